"""Counts verdicts, one a line, and says how often a change of nothing was called something."""

import sys
from collections import Counter
from math import lgamma, exp, log


def tail(n, k, p):
    """P(X <= k) of a binomial."""
    if p <= 0:
        return 1.0
    if p >= 1:
        return float(k >= n)
    return sum(
        exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) + (n - i) * log(1 - p))
        for i in range(k + 1)
    )


def clopper_pearson(n, k, level=0.95):
    """The exact interval of a share (Clopper and Pearson 1934), by bisection."""

    def solve(below):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if below(middle) else (low, middle)
        return low

    side = (1 - level) / 2
    lower = 0.0 if k == 0 else solve(lambda p: 1 - tail(n, k - 1, p) < side)
    upper = 1.0 if k == n else solve(lambda p: tail(n, k, p) > side)
    return lower, upper


def main():
    verdicts, pairs, left_out = Counter(), 0, 0
    for line in sys.stdin:
        verdict, measured, lost = line.split("\t")
        verdicts[verdict] += 1
        pairs += int(measured)
        left_out += int(lost)
        n = sum(verdicts.values())
        print(f"\r{n} trials", end="", file=sys.stderr, flush=True)
    n = sum(verdicts.values())
    print(f"\n{n} trials of a change that changes nothing, {pairs / max(n, 1):.1f} pairs each on average, "
          f"{left_out} pairs left out")
    for verdict in sorted(set(verdicts) | {"better", "worse"}):
        k = verdicts[verdict]
        low, high = clopper_pearson(n, k) if n else (0, 1)
        print(f"  {verdict:<24} {k:>5}  {100 * k / max(n, 1):5.1f} %  (95 %: {100 * low:.1f} to {100 * high:.1f} %)")


main()
