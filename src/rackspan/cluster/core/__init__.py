"""The decisions of brokers, the controller and coordinators: events in, effects out, on any clock.

Begin with messages.py (messages and effects), metadata.py (the controller's records and the image), then log/, broker/ and
controller/. process.py is a broker with its coordinators, which are in groups/ and transactions/. Events are methods such as
`on_message(now, source, message)` and `on_tick(now)`; each returns a list of effects. The same code runs under asyncio and in
the seeded simulation. Pure: the time in ms and the random generator are arguments; no socket, thread or wall clock.
"""
