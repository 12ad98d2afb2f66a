# SPDX-License-Identifier: Apache-2.0
"""The same as the quick kill test, fifty rounds in all, in place of a few."""

from support.case import MAIN_TRANSPORTS, SSH_PUSH, over
from support.crash import KillRounds


@over(*MAIN_TRANSPORTS)
class KilledOften(KillRounds):
    def test_client_and_server(self):
        self.kill_rounds(rounds=14, seed=2)


@over(SSH_PUSH)
class KilledOverSsh(KillRounds):
    def test_client(self):
        self.kill_rounds(rounds=8, seed=3)
