"""The best assignment by constraint programming: one variable for each partition and member, none of our flows."""

from ortools.sat.python import cp_model

from rackspan.consumers import ConsumerGroup
from tests.consumers.groups import Cost, moved, readable


def best_by_constraints(group: ConsumerGroup) -> Cost:
    """Squares of the loads, partitions read across racks, partitions moved: each least, in this order."""
    model = cp_model.CpModel()
    partitions = readable(group)
    reads = {
        (partition, member.id): model.new_bool_var("")
        for partition in partitions
        for member in group.members
        if partition.topic in member.topics
    }
    for partition in partitions:
        model.add_exactly_one(var for (read, _), var in reads.items() if read == partition)
    far = [
        reads[partition, m.id]
        for m in group.members
        for partition in partitions
        if (partition, m.id) in reads and m.rack not in group.racks[partition]
    ]
    by_id = {member.id: member for member in group.members}
    moves = [var for (partition, reader), var in reads.items() if moved(group, partition, by_id[reader])]
    return (
        _least(model, _squares(model, group, reads, len(partitions))),
        _least(model, sum(far)),
        _least(model, sum(moves)),
    )


def _squares(model: cp_model.CpModel, group: ConsumerGroup, reads: dict, most: int) -> cp_model.LinearExprT:  # type: ignore[type-arg]
    squares = []
    for member in group.members:
        load, square = model.new_int_var(0, most, ""), model.new_int_var(0, most * most, "")
        model.add(load == sum(var for (_, reader), var in reads.items() if reader == member.id))
        model.add_multiplication_equality(square, load, load)
        squares.append(square)
    return sum(squares)


def _least(model: cp_model.CpModel, expression: cp_model.LinearExprT) -> int:
    """The least value of an expression, which becomes a constraint of the model."""
    model.minimize(expression)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    least = round(solver.objective_value)
    model.clear_objective()  # type: ignore[no-untyped-call]
    model.add(expression == least)
    return least
