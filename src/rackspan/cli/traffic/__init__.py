"""Commands about what crosses racks: clients.py by who reads, flows.py by bytes and their price. They decide nothing."""
