"""The whole system on one page: read, judge, decide, act. `cli` and `web` are skins over these."""
