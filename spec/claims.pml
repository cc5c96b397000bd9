// SPDX-License-Identifier: Apache-2.0
// claims: what the four models have in common.
//
// must(claim, condition) is an assertion with a name: pan reports "assertion violated claim", so that script/check-models
// can tell whether a planted fault was found for the reason for which it was planted. A claim is a bool that begins true;
// it is false in no state but the last one, so it costs no states.

#define must(claim, condition) claim = (condition); assert(claim)

// One tick of a clock that counts down to zero and stays there.
#define count_down(left) left = (left > 0 -> left - 1 : 0)

#define larger(a, b) ((a) > (b) -> (a) : (b))
