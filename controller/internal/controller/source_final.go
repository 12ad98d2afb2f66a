// SPDX-License-Identifier: Apache-2.0

package controller

import "volferry.io/controller/api/v1alpha1"

// finalSyncOver tells whether a Source's final sync needs its volume no more.
func finalSyncOver(source *v1alpha1.Source) bool {
	status := source.Status.FinalSync
	return status != nil && status.Completed != nil
}
