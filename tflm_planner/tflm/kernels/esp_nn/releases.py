"""Which releases of ESP-NN were read, and where their sizes of scratch part.

    1.1.2, 1.2.0    the S3 copies filters and padded inputs
    1.2.1, 1.2.2    the S3 counts a second copy of the filter and one of the input
    1.2.3           P4 kernels of their own; larger margins on the S3

Formulas change between patch releases, so that a target names one. This module must not know
operators.
"""

from __future__ import annotations

Release = tuple[int, int, int]

RELEASES: tuple[Release, ...] = ((1, 1, 2), (1, 2, 0), (1, 2, 1), (1, 2, 2), (1, 2, 3))
"""Those that were read, in order: tags v1.1.2 and v1.2.0 (component 1.2.0~1) of espressif/esp-nn,
and its commits 79d59ae, def4d7a and d45b843."""
NEWEST = RELEASES[-1]
S3_COUNTS_ALIGNED_COPIES: Release = (1, 2, 1)
"""From here on the S3's sizes hold an aligned filter and padding at the right and below."""
WIDER_MARGIN: Release = (1, 2, 3)
P4_HAS_OWN_PATHS: Release = (1, 2, 3)
WIDER_S16_MARGIN: Release = (1, 2, 0)
RUNS_GROUPS: Release = (1, 2, 3)
"""From here on a convolution in groups goes to a kernel that knows groups."""


def spell(release: Release) -> str:
    """ "1.2.3"."""
    return ".".join(map(str, release))
