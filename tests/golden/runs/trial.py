# SPDX-License-Identifier: BSD-3-Clause
"""What the other files compute with just now."""
import numpy as np

real = np.float64
mutant = None  # name of the mistake that is tried
