"""KafkaCluster: brokers and controllers of real Apache Kafka (KRaft), as Java processes that Python starts and stops."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self

from rackspan.errors import KafkaProcessFailed, UsageError
from rackspan.java import find_java
from rackspan.kafka_process import node_config
from rackspan.kafka_process.data_folder import DataFolder
from rackspan.kafka_process.node_process import NodeProcess, stop_deadline
from rackspan.kafka_process.ports import LOOPBACK, HeldPorts
from rackspan.kafka_process.release import class_archive
from rackspan.kafka_process.release.jars import ProgressCallback, resolve_jars
from rackspan.kafka_process.release.runtime import KafkaRuntime, random_uuid
from rackspan.kafka_process.release.versions import DEFAULT_VERSION, KafkaVersion
from rackspan.kafka_process.topology import distribute_nodes

_POLL_SECONDS: Final = 0.1


class KafkaCluster:
    """A Kafka cluster on loopback: `with KafkaCluster(racks=("r1", "r2", "r3"), brokers=6) as cluster: ...`

    Brokers are 1…n, distributed to `racks` in turn (None: a broker without a rack). `controllers` maps voters to racks; an
    id that is a broker's makes it a combined node; by default brokers 1 to 3 are combined. `config` goes into every node's
    properties. `listeners` are further listeners of each broker, by name with Kafka's security protocol, such as
    {"TLS": "SSL"}. `data_dir` is kept and can be started again; by default a temporary folder is used and removed. The Java
    processes end with this process, however it ends. Errors: UsageError for a `data_dir` that a newer release has formatted.
    """

    def __init__(
        self,
        racks: Sequence[str | None] = ("r1", "r2", "r3"),
        brokers: int = 6,
        *,
        controllers: Mapping[int, str | None] | None = None,
        version: str = DEFAULT_VERSION,
        data_dir: Path | None = None,
        config: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        progress: ProgressCallback | None = None,
        ready_seconds: float = 120.0,
    ) -> None:
        self.version = KafkaVersion.parse(version)
        self.racks = tuple(racks)
        self.nodes = distribute_nodes(racks, brokers, controllers)
        self.cluster_id = random_uuid()
        self._data_dir = data_dir
        self._config = dict(config or {})
        self._listeners = dict(listeners or {})
        self._progress = progress
        self._ready_seconds = ready_seconds
        self._ports = HeldPorts()
        self._client_ports: Mapping[int, int] = MappingProxyType({})
        self._controller_ports: Mapping[int, int] = MappingProxyType({})
        self._more_ports: Mapping[str, Mapping[int, int]] = MappingProxyType({})
        self._folder: DataFolder | None = None
        self._runtime: KafkaRuntime | None = None
        self._processes: dict[int, NodeProcess] = {}
        self.paused: set[int] = set()
        """Nodes that run and are suspended."""

    # -- members and addresses

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of brokers. `nodes` has the controllers too."""
        return tuple(node.id for node in self.nodes if node.is_broker)

    @property
    def bootstrap_servers(self) -> str:
        """Every broker, stopped ones too: "127.0.0.1:…,127.0.0.1:…"."""
        return ",".join(map(self.address, self.brokers))

    def address(self, broker: int) -> str:
        """HOST:PORT of one broker, running or not."""
        return f"{LOOPBACK}:{self._client_ports[self._process(broker).node.id]}"

    def rack(self, broker: int) -> str | None:
        return self._process(broker).node.rack

    @property
    def bootstrap_controllers(self) -> str:
        """Every controller, stopped ones too, for `--bootstrap-controller`: "127.0.0.1:…,127.0.0.1:…"."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self._controller_ports.values())

    def bootstrap_servers_of(self, listener: str) -> str:
        """Every broker, by its address on one of `listeners`."""
        return ",".join(f"{LOOPBACK}:{self._more_ports[listener][broker]}" for broker in self.brokers)

    @property
    def pids(self) -> dict[int, int]:
        """Java process ids of the running nodes, by node id."""
        return {node_id: process.pid for node_id, process in self._processes.items() if process.pid is not None}

    @property
    def runtime(self) -> KafkaRuntime:
        """The Java runtime of this release, for Kafka's console tools."""
        if self._runtime is None:
            raise UsageError("the Kafka cluster is not started; use it in a with statement, or call start()")
        return self._runtime

    def nodes_in(self, rack: str | None) -> tuple[int, ...]:
        """Brokers and controllers of a rack. Errors: UsageError when there is no such rack."""
        node_ids = tuple(node.id for node in self.nodes if node.rack == rack)
        if not node_ids:
            racks = ", ".join(sorted({str(node.rack) for node in self.nodes}))
            raise UsageError(f"no rack {rack!r} in this Kafka cluster; its racks are {racks}")
        return node_ids

    def log_tail(self, node_id: int) -> str:
        return self._process(node_id).log_tail()

    # -- start and stop

    def start(self) -> None:
        """Fetch the jars if necessary, prepare and start every node; returns when all are ready."""
        java = find_java()
        runtime = KafkaRuntime(java, resolve_jars(self.version, self._progress, java=java))
        # Without the archive this cluster starts more slowly, or fails for the same reason.
        with suppress(KafkaProcessFailed):
            self._archive_classes(runtime)
        self._start(runtime)

    def _archive_classes(self, runtime: KafkaRuntime) -> None:
        """Start and stop a node of its own that writes the class archive, if there is none."""
        with class_archive.writing(runtime.class_archive) as java_options:
            if java_options:
                self._report(
                    f"starting Kafka {self.version} once to archive its classes; later starts take two thirds of the time"
                )
                with closing(KafkaCluster((None,), 1, version=str(self.version))) as cluster:
                    cluster._start(replace(runtime, java_options=java_options))
                    (process,) = cluster._processes.values()
                    process.begin_stop()
                    if not process.end_stop(time.monotonic() + self._ready_seconds):
                        raise KafkaProcessFailed("the class archive may be cut off", process.log_tail())

    def _start(self, runtime: KafkaRuntime) -> None:
        self._runtime = runtime
        self._folder = DataFolder(self._data_dir)
        self._folder.claim(self.version)
        cluster_id = self._folder.cluster_id()
        self.cluster_id = cluster_id or self.cluster_id
        self._prepare(self._folder.path, runtime)
        self._format(is_new=cluster_id is None)
        self._report(f"starting {len(self.nodes)} Kafka {self.version} nodes")
        self._start_nodes(self._processes)

    def close(self) -> None:
        """Stop every node and remove temporary files. Safe to call twice."""
        try:
            if self._data_dir is not None:
                self.stop(*self._processes)
            self._kill(self._processes)
        finally:
            self._ports.close()
            if self._folder is not None:
                self._folder.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- faults of racks, brokers and controllers, each with its inverse, by the names that EmbeddedCluster has

    def lose_rack(self, rack: str | None) -> None:
        """Kill a rack's nodes, as a power cut does; the controller fences its brokers after their session timeout."""
        self.kill(*self.nodes_in(rack))

    def restore_rack(self, rack: str | None) -> None:
        """Start a rack's nodes again; returns when they are ready."""
        self._start_nodes(self.nodes_in(rack))

    def kill(self, *nodes: int) -> None:
        """Kill brokers or controllers, without a shutdown."""
        self._kill(nodes)

    def stop(self, *nodes: int) -> None:
        """Stop brokers or controllers with a controlled shutdown, which moves leaders first."""
        chosen = [self._process(node) for node in nodes]
        for process in chosen:
            process.begin_stop()
        deadline = stop_deadline()
        for process in chosen:
            process.end_stop(deadline)
            self.paused.discard(process.node.id)

    def restart(self, *nodes: int) -> None:
        """The inverse of kill and stop; running nodes are killed first. Returns when all are ready."""
        self._kill(nodes)
        self._start_nodes(nodes)

    def pause(self, *nodes: int) -> None:
        """Suspend nodes (SIGSTOP): their connections stay open and get no response, as in a long pause of a machine."""
        for process in [self._process(node) for node in nodes]:
            process.freeze()
            self.paused.add(process.node.id)

    def resume(self, *nodes: int) -> None:
        for process in [self._process(node) for node in nodes]:
            process.thaw()
            self.paused.discard(process.node.id)

    def undo_faults(self) -> None:
        """The inverse of every fault at once. Returns when all nodes are ready."""
        self.resume(*self._processes)
        self._start_nodes(self._processes)

    def _kill(self, nodes: Iterable[int]) -> None:
        for process in [self._process(node) for node in nodes]:
            process.kill()
            self.paused.discard(process.node.id)

    def _start_nodes(self, nodes: Iterable[int]) -> None:
        """Start those that are not running."""
        chosen = [self._process(node) for node in nodes]
        for process in chosen:
            for port in self._ports_of(process.node.id):
                self._ports.release_for_use(port)
            process.begin_start()
        self._wait_for(chosen)

    def wait_until_ready(self) -> None:
        """Wait until every running node has finished its start. Errors: KafkaProcessFailed."""
        self._wait_for([process for process in self._processes.values() if process.is_running])

    # -- internals

    def _prepare(self, folder: Path, runtime: KafkaRuntime) -> None:
        client_ports = {broker: self._ports.take() for broker in self.brokers}
        more_ports = {name: {broker: self._ports.take() for broker in self.brokers} for name in self._listeners}
        controller_ports = {node.id: self._ports.take() for node in self.nodes if node.is_controller}
        self._client_ports, self._controller_ports, self._more_ports = client_ports, controller_ports, more_ports
        more = {name: (protocol, more_ports[name]) for name, protocol in self._listeners.items()}
        for node in self.nodes:
            settings = node_config.properties(
                node, self.nodes, client_ports, controller_ports, folder / f"node-{node.id}", self._config, more
            )
            self._processes[node.id] = NodeProcess(node, folder, settings, runtime)

    def _format(self, *, is_new: bool) -> None:
        """Format the folder of each node with Kafka's tool, in a new cluster one of each combination of roles, and copy the others.

        Another Java process for each node would take a second of processor time.
        """
        nodes = list(self._processes.values())
        formatted: dict[str, NodeProcess] = {}
        for process in nodes:
            formatted.setdefault(process.node.roles, process)
        chosen = list(formatted.values()) if is_new else nodes
        for process in chosen:
            process.begin_format(self.cluster_id)
        for process in chosen:
            process.end_format(self._ready_seconds)
        for process in nodes:
            if process not in chosen:
                process.copy_format(formatted[process.node.roles])

    def _wait_for(self, processes: Sequence[NodeProcess]) -> None:
        until = time.monotonic() + self._ready_seconds
        waiting = list(processes)
        while waiting := [process for process in waiting if not process.is_ready()]:
            if time.monotonic() > until:
                raise self._never_ready(waiting)
            time.sleep(_POLL_SECONDS)

    def _never_ready(self, waiting: Sequence[NodeProcess]) -> KafkaProcessFailed:
        names = ", ".join(str(process.node.id) for process in waiting)
        return KafkaProcessFailed(
            f"Kafka nodes {names} were not ready after {self._ready_seconds:.0f} s; are enough controllers running?",
            waiting[0].log_tail(),
        )

    def _process(self, node_id: int) -> NodeProcess:
        if node_id not in self._processes:
            known = ", ".join(map(str, self._processes)) or "none, since it is not started"
            raise UsageError(f"no node {node_id} in this Kafka cluster; its nodes are {known}")
        return self._processes[node_id]

    def _ports_of(self, node_id: int) -> list[int]:
        held = (self._client_ports, self._controller_ports, *self._more_ports.values())
        return [ports[node_id] for ports in held if node_id in ports]

    def _report(self, line: str) -> None:
        if self._progress is not None:
            self._progress(line)


def console_tool(cluster: KafkaCluster, main_class: str, *arguments: str, seconds: float = 60.0) -> str:
    """Run one of Kafka's own console tools against the cluster and return its output.

    `--bootstrap-server` is added: `console_tool(cluster, "org.apache.kafka.tools.TopicCommand", "--describe")`.
    Errors: KafkaProcessFailed.
    """
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    return cluster.runtime.run_tool(main_class, *server, *arguments, seconds=seconds)
