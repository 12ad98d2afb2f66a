# SPDX-License-Identifier: Apache-2.0
"""Parts of bench/compare: seeded data, contenders, measured runs, the comparator and the report."""
