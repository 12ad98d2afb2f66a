# SPDX-License-Identifier: Apache-2.0
"""Helpers of the system tests. None of them shares code with the engine."""
