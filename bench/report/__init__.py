# SPDX-License-Identifier: Apache-2.0
"""What script/bench is made of: servers, what is run on them, and how it is told."""
