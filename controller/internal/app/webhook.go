// SPDX-License-Identifier: Apache-2.0

package app

import "sigs.k8s.io/controller-runtime/pkg/manager"

func addWebhook(_ manager.Manager, _ Options) error { return nil }
