// SPDX-License-Identifier: Apache-2.0

// Package params turns the string parameters of the built-in method into typed values, and those into the environment of
// the mover. It knows every parameter that exists: an unknown or malformed one is an *Error that names it, and a value
// that looks like a key is never repeated. Nothing here talks to a cluster.
//
// An empty value means the default, except for storageClassName, where Kubernetes gives the empty string a meaning of its
// own.
package params
