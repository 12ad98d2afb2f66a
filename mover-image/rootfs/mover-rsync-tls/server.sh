#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where VolSync's operator expects the destination of its rsync-tls mover.
exec /usr/bin/volferry volsync destination
