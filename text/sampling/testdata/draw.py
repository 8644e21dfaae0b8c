"""Writes draw.json: the noise of some tokens, exponentials, logarithms and draws, bit by bit.

    python3 draw.py       # needs nothing but Python

It does what docs/sampling.md says, and shares nothing with package sampling: a fused multiply-add is a fraction that
is rounded once, and Python's own operations on floats are correctly rounded.
"""

import fractions
import json
import math
import pathlib
import random


def fma(a, b, c):
    return float(fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c))


LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")


def exp(y):
    if y < -700:
        return 0.0
    k = float(round(y * float.fromhex("0x1.71547652b82fep+0")))
    r = fma(-k, LN2_LOW, fma(-k, LN2_HIGH, y))
    p = 0.0
    for n in range(13, -1, -1):
        p = fma(p, r, 1.0 / math.factorial(n))
    return math.ldexp(p, int(k))


def ln(x):
    m, k = math.frexp(x)
    if m < float.fromhex("0x1.6a09e667f3bcdp-1"):
        m, k = 2 * m, k - 1
    f = m - 1
    s = f / (2 + f)
    z = s * s
    p = 0.0
    for n in range(23, 1, -2):
        p = fma(p, z, 1.0 / n)
    low = fma(float(k), LN2_LOW, 2 * s * (z * p))
    return fma(float(k), LN2_HIGH, 2 * s + low)


def philox(counter, key):
    c, k, word = list(counter), list(key), 2**32
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b // word) ^ c[1] ^ k[0], b % word, (a // word) ^ c[3] ^ k[1], a % word]
        k = [(k[0] + 0x9E3779B9) % word, (k[1] + 0xBB67AE85) % word]
    return c


def noise(seed, position, token):
    out = philox([token // 2, 0, position % 2**32, position // 2**32], [seed % 2**32, seed // 2**32])
    low, high = out[2 * (token % 2):][:2]
    v = 2 * ((high * 2**32 + low) // 2**12) + 1
    return -ln(-ln((2**53 - v) / 2**53))


def draw(logits, temperature, seed, position):
    sums = [x / temperature + noise(seed, position, i) for i, x in enumerate(logits)]
    return sums.index(max(sums))


def main():
    rng = random.Random(4)
    places = [(0, 0, 0), (0, 0, 1), (2**64 - 1, 2**40 + 7, 262143)] + \
        [(rng.randrange(2**64), rng.randrange(2**20), rng.randrange(2**18)) for _ in range(300)]
    ys = [0.0, -700.0, -1e-300, -0.5, -math.log(2)] + [-rng.expovariate(0.05) for _ in range(300)]
    xs = [1.0, 2.0**-53, 1 - 2.0**-53, 0.7071067811865475, 0.7071067811865476, 36.7] + \
        [rng.lognormvariate(0, 9) for _ in range(300)]
    draws = []
    for _ in range(100):
        case = {"logits": [round(rng.gauss(0, 4), 2) for _ in range(rng.randrange(1, 40))],
                "temperature": rng.choice([0.3, 0.6, 1.0, 1.7]), "seed": rng.randrange(2**64),
                "position": rng.randrange(2**17)}
        draws.append(case | {"id": draw(case["logits"], case["temperature"], case["seed"], case["position"])})
    out = {"noise": [{"seed": s, "position": p, "token": t, "noise": noise(s, p, t).hex()} for s, p, t in places],
           "exp": [{"x": y.hex(), "y": exp(y).hex()} for y in ys], "ln": [{"x": x.hex(), "y": ln(x).hex()} for x in xs],
           "draws": draws}
    lines = [f'"{name}": [\n' + ",\n".join(json.dumps(x) for x in rows) + "\n]" for name, rows in out.items()]
    pathlib.Path(__file__).with_name("draw.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
