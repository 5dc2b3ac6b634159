"""What brokers and the controller decide: messages in, effects out, on any clock.

Begin with messages.py (all that travels), metadata/ (what the controller records and what brokers make of it), then
partition_log.py, broker/ and controller/. Each has two doors, `on_message(now, source, message)` and `on_tick(now)`,
and one exit, a list of effects. The same code runs under asyncio and in the seeded simulation.
Pure: milliseconds and rng arrive as arguments; never a socket, a thread, a wall clock or an encoded request.
"""
