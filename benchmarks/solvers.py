"""Other solvers of subset-sum problems, to compare ours with: NumPy, torch, and one integer program per problem.

The program is that of the paper's authors: minimise e subject to -e <= sum_k values[k] x[k] - target <= e, x binary.
"""

import importlib.util
from collections.abc import Callable

import numpy as np
import torch

SolveOne = Callable[[np.ndarray, float], np.ndarray | None]  # (values, target) -> mask, None if it gives up
CPSAT_BITS = 40  # CP-SAT works on integers: values are rounded to 2^-40 of the largest


def with_numpy(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(P, n) values, (P,) targets -> (P, n) masks: one half's sums sorted, the other's looked up, for each problem."""
    n = values.shape[1]
    count_a, count_b = n // 2, n - n // 2
    table_a = (np.arange(2**count_a)[:, None] >> np.arange(count_a)) & 1
    table_b = (np.arange(2**count_b)[:, None] >> np.arange(count_b)) & 1
    masks = np.empty(values.shape, bool)
    for p, (row, target) in enumerate(zip(values, targets, strict=True)):
        sums_a, sums_b = table_a @ row[:count_a], table_b @ row[count_a:]
        order = np.argsort(sums_b)
        sorted_b = sums_b[order]
        place = np.searchsorted(sorted_b, target - sums_a)
        near = np.stack([np.maximum(place - 1, 0), np.minimum(place, len(sorted_b) - 1)])
        off = np.abs(sums_a + sorted_b[near] - target)
        side, best = np.unravel_index(np.argmin(off), off.shape)
        masks[p] = np.concatenate([table_a[best], table_b[order[near[side, best]]]])
    return masks


def with_torch(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(P, n) values, (P,) targets -> (P, n) masks: the same for all problems at once."""
    n = values.shape[1]
    count_a = (n + 1) // 2
    given = torch.from_numpy(values)
    sums_a = _all_sums(given[:, :count_a])
    sums_b, order_b = _all_sums(given[:, count_a:]).sort(dim=1)
    wanted = torch.from_numpy(targets)[:, None] - sums_a
    above = torch.searchsorted(sums_b, wanted).clamp(max=sums_b.shape[1] - 1)
    below = (above - 1).clamp(min=0)
    error_above, error_below = ((sums_b.gather(1, place) - wanted).abs() for place in (above, below))
    nearest = torch.where(error_below <= error_above, below, above)
    best_a = torch.minimum(error_above, error_below).argmin(dim=1, keepdim=True)
    best_b = order_b.gather(1, nearest.gather(1, best_a))
    bits = best_a | (best_b << count_a)
    return ((bits >> torch.arange(n)) & 1 == 1).numpy()


def _all_sums(values: torch.Tensor) -> torch.Tensor:
    """(P, m) -> (P, 2^m): the sum of every subset, whose bits are its column number."""
    sums = values.new_zeros(values.shape[0], 1)
    for k in range(values.shape[1]):
        sums = torch.cat([sums, sums + values[:, k : k + 1]], dim=1)
    return sums


def installed() -> list[str]:
    """The names of the integer programs' solvers that can be imported."""
    return [name for name, (module, _) in PROGRAMS.items() if importlib.util.find_spec(module)]


def program(name: str) -> Callable[[np.ndarray, float], float]:
    """The function (values, target) -> error of one of PROGRAMS; NaN where it finds no solution."""
    one = PROGRAMS[name][1]()

    def solve(values: np.ndarray, target: float) -> float:
        scale = max(np.abs(values).max(), abs(target))
        mask = one(values / scale, target / scale)
        return float("nan") if mask is None else abs(float(values[mask].sum()) - target)

    return solve


def _highs() -> SolveOne:
    from scipy.optimize import Bounds, LinearConstraint, milp

    unit = 2.0**10  # HiGHS accepts a row violated by 1e-7: written in larger units, that is a smaller error

    def one(values: np.ndarray, target: float) -> np.ndarray | None:
        n = len(values)
        rows = np.array([[*(values * unit), -1.0], [*(values * unit), 1.0]])
        result = milp(
            np.append(np.zeros(n), 1.0),
            constraints=LinearConstraint(rows, [-np.inf, target * unit], [target * unit, np.inf]),
            integrality=np.append(np.ones(n), 0),
            bounds=Bounds(np.zeros(n + 1), np.append(np.ones(n), np.inf)),
            options={"mip_rel_gap": 0.0},
        )
        return None if result.x is None else result.x[:n] > 0.5

    return one


def _gurobi() -> SolveOne:
    import gurobipy as gp

    tight = {"MIPGap": 0, "MIPGapAbs": 0, "IntFeasTol": 1e-9, "FeasibilityTol": 1e-9, "OptimalityTol": 1e-9}
    env = gp.Env(params={"OutputFlag": 0, "Threads": 1, **tight})

    def one(values: np.ndarray, target: float) -> np.ndarray | None:
        with gp.Model(env=env) as model:
            keep, error = model.addMVar(len(values), vtype=gp.GRB.BINARY), model.addVar()
            model.addConstr(values @ keep - target <= error)
            model.addConstr(target - values @ keep <= error)
            model.setObjective(error)
            model.optimize()
            return np.asarray(keep.X > 0.5) if model.SolCount else None

    return one


def _cpsat() -> SolveOne:
    from ortools.sat.python import cp_model

    def one(values: np.ndarray, target: float) -> np.ndarray | None:
        whole = [round(float(v) * 2**CPSAT_BITS) for v in values]
        whole_target = round(float(target) * 2**CPSAT_BITS)
        model = cp_model.CpModel()
        keep = [model.new_bool_var("") for _ in whole]
        error = model.new_int_var(0, sum(map(abs, whole)) + abs(whole_target), "")
        total = sum(v * k for v, k in zip(whole, keep, strict=True))
        model.add(total - whole_target <= error)
        model.add(whole_target - total <= error)
        model.minimize(error)
        search = cp_model.CpSolver()
        search.parameters.num_workers = 1
        solved = search.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return np.array([search.boolean_value(k) for k in keep]) if solved else None

    return one


PROGRAMS: dict[str, tuple[str, Callable[[], SolveOne]]] = {  # the module it needs, and what makes it
    "HiGHS": ("scipy", _highs),
    "CP-SAT": ("ortools", _cpsat),
    "Gurobi": ("gurobipy", _gurobi),
}
