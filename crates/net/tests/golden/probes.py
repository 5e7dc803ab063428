"""Golden values of the probes: scikit-learn's nearest neighbours and logistic regression on features
drawn from their names.

python crates/net/tests/golden/probes.py
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from fill import signed
from generate import write

N, Q, D = 120, 30, 12


def drawn(classes):
    """Features around a centre per class, labels in turn with every tenth one wrong, and queries."""
    labels = np.arange(N) % classes
    labels[::10] = (labels[::10] + 1) % classes
    centres = signed(f"centres{classes}", (classes, D), 1.0).numpy()
    features = signed(f"features{classes}", (N, D), 2.0).numpy() + centres[np.arange(N) % classes]
    queries = signed(f"queries{classes}", (Q, D), 2.0).numpy() + centres[np.arange(Q) % classes]
    return features, labels, queries


def numbers(a):
    return [[float(f"{v:.9g}") for v in row] for row in a]


def knn():
    out = []
    for classes, k, temperature in [(2, 7, None), (4, 20, 0.07), (4, 1, None), (3, N, 0.5)]:
        x, y, q = drawn(classes)
        weights = "uniform" if temperature is None else lambda d, t=temperature: np.exp((1 - d) / t)
        net = KNeighborsClassifier(k, metric="cosine", algorithm="brute", weights=weights).fit(x.astype(np.float64), y)
        out.append({"classes": classes, "k": k, "temperature": temperature,
                    "probabilities": numbers(net.predict_proba(q.astype(np.float64)))})
    return out


def logistic():
    out = []
    for classes, c in [(2, 1.0), (2, 0.01), (3, 1.0), (8, 10.0)]:
        x, y, q = drawn(classes)
        net = LogisticRegression(C=c, solver="lbfgs", tol=1e-10, max_iter=100_000).fit(x.astype(np.float64), y)
        out.append({"classes": classes, "c": c, "probabilities": numbers(net.predict_proba(q.astype(np.float64)))})
    return out


write("probes", {"knn": knn(), "logistic": logistic()})
