"""Reference solvers: one integer program per problem, as the paper's authors do with Gurobi.

minimise e subject to -e <= sum_k values[k] x[k] - target <= e, x binary. Slow; here to compare with.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from strongticket.errors import MissingDependency, StrongTicketError

SolveOne = Callable[[np.ndarray, float, float], np.ndarray]  # (values, target, tolerance) -> mask

_stdout = threading.Lock()  # descriptor 1 belongs to the whole process: one thread at a time may redirect it
CPSAT_BITS = 40  # CP-SAT works on integers: values are rounded to 2^-40 of the largest


def solver(backend: str) -> Callable[[np.ndarray, np.ndarray, float], np.ndarray]:
    """The function (values, targets, tolerance) -> masks of "highs", "gurobi" or "cpsat"."""
    one = {"highs": _highs, "gurobi": _gurobi, "cpsat": _cpsat}[backend]()

    def solve_rows(values: np.ndarray, targets: np.ndarray, tolerance: float) -> np.ndarray:
        masks = np.zeros(values.shape, np.bool_)
        for p, (row, target) in enumerate(zip(values, targets, strict=True)):
            scale = max(np.abs(row).max(), abs(target))
            if scale > 0:
                masks[p] = one(row / scale, target / scale, tolerance / scale) & (row != 0)
        return masks

    return solve_rows


def _highs() -> SolveOne:
    from scipy.optimize import Bounds, LinearConstraint, milp

    # HiGHS accepts a row violated by 1e-7: written in larger units, that is a smaller error.
    unit = 2.0**10

    def one(row: np.ndarray, target: float, tolerance: float) -> np.ndarray:
        n = len(row)
        rows = np.vstack([np.append(row, -1.0), np.append(row, 1.0)]) * unit
        rows[:, -1] = -1.0, 1.0
        constraint = LinearConstraint(rows, [-np.inf, target * unit], [target * unit, np.inf])
        with _silent():
            result = milp(
                np.append(np.zeros(n), 1.0),
                constraints=constraint,
                integrality=np.append(np.ones(n), 0),
                bounds=Bounds(np.zeros(n + 1), np.append(np.ones(n), np.inf)),
                options={"mip_rel_gap": 0.0},
            )
        if result.x is None:
            raise StrongTicketError(f"HiGHS found no solution: {result.message}", hint="Use backend='numba'.")
        kept: np.ndarray = result.x[:n] > 0.5
        return kept

    return one


@contextmanager
def _silent() -> Iterator[None]:
    """HiGHS prints debugging lines straight to standard output, whatever its options say."""
    with _stdout:
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            os.close(nowhere)


def _gurobi() -> SolveOne:
    try:
        import gurobipy as gp
    except ImportError as error:
        raise MissingDependency("gurobipy", "gurobi") from error
    tight = {"MIPGap": 0, "MIPGapAbs": 0, "IntFeasTol": 1e-9, "FeasibilityTol": 1e-9, "OptimalityTol": 1e-9}
    env = gp.Env(params={"OutputFlag": 0, "Threads": 1, **tight})

    def one(row: np.ndarray, target: float, tolerance: float) -> np.ndarray:
        with gp.Model(env=env) as model:
            keep, error = model.addMVar(len(row), vtype=gp.GRB.BINARY), model.addVar()
            model.addConstr(row @ keep - target <= error)
            model.addConstr(target - row @ keep <= error)
            model.setObjective(error)
            if tolerance > 0:
                model.Params.BestObjStop = tolerance
            model.optimize()
            if model.SolCount == 0:
                raise StrongTicketError(
                    f"Gurobi found no solution (status {model.Status})", hint="Use backend='numba'."
                )
            return np.asarray(keep.X > 0.5)

    return one


def _cpsat() -> SolveOne:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise MissingDependency("ortools", "ortools") from error

    def one(row: np.ndarray, target: float, tolerance: float) -> np.ndarray:
        whole = [round(float(v) * 2**CPSAT_BITS) for v in row]
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
        if search.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise StrongTicketError("CP-SAT found no solution", hint="Use backend='numba'.")
        return np.array([search.boolean_value(k) for k in keep])

    return one
