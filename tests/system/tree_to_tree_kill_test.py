# SPDX-License-Identifier: Apache-2.0
"""kill -9 of either end at random moments: every name is old or new, the next run completes and
leaves nothing behind.
"""

from support.case import MAIN_TRANSPORTS, over
from support.crash import KillRounds


@over(*MAIN_TRANSPORTS)
class KilledAtRandom(KillRounds):
    def test_client_and_server(self):
        self.kill_rounds(rounds=4, seed=1)
