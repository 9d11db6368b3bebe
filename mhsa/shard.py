"""The heads of one MultiHeadAttention over n processes (tensor parallel), each of which holds h / n of them.

W_Q, W_K and W_V are cut by columns and W_O by rows, always between two heads: a process computes the heads whose
parameters it holds. Two sums go over all processes, each an all-reduce: of the output in the forward pass, of the
input's gradient in the backward pass. In a ring each process sends 2 (n - 1) / n times the tensor that is added up.
`torchrun --standalone --nproc-per-node 2 -m mhsa.shard` prints what each process holds and adds: by NCCL if there is
a GPU for each, else by gloo on the CPU. Source: Shoeybi et al. 2019 (Megatron-LM), section 3.
"""

import os
import socket
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils._python_dispatch import TorchDispatchMode

from mhsa.checks import check_divides, check_inputs, check_size, check_type
from mhsa.layers import MultiHeadAttention
from mhsa.processes import leave, run_processes


class Share(NamedTuple):
    """One process's part: its heads, the bytes of its parameters, and those that it gives to the all-reduces."""

    num_heads: int
    bytes_held: int
    all_reduce_forward: int
    all_reduce_backward: int


class ShardReport(NamedTuple):
    """out (B, T, d_model), the gradients of sum(out²) / 2 by name, and every process's share, in rank order.

    gradients: of "query" and of each parameter ("w_q.weight", …), put together from all processes.
    """

    out: Tensor
    gradients: dict[str, Tensor]
    shares: list[Share]

    def __str__(self) -> str:
        lines = ["process  heads    bytes held  all-reduce forward  all-reduce backward"]
        lines += [
            f"{rank:7} {share.num_heads:6} {share.bytes_held:13,} "
            f"{share.all_reduce_forward:19,} {share.all_reduce_backward:20,}"
            for rank, share in enumerate(self.shares)
        ]
        return "\n".join(lines)


class AllReduceBytes(TorchDispatchMode):
    """While it is on, adds up the bytes of each tensor that this process gives to an all-reduce."""

    total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if DTensor in types:
            return NotImplemented  # it comes again, with the plain tensor of this process
        if func.overloadpacket is torch.ops._c10d_functional.all_reduce:
            self.total += args[0].nbytes
        return func(*args, **(kwargs or {}))


def shard(layer: MultiHeadAttention, mesh: DeviceMesh) -> MultiHeadAttention:
    """Cut the layer in place: this process keeps its share of the heads. It is called as before, in all processes.

    Raises ValueError where the heads, or the heads of keys and values, do not divide by the processes.
    """
    check_shares(layer, mesh.size())
    parallelize_module(
        layer,
        mesh,
        {"w_q": ColwiseParallel(), "w_k": ColwiseParallel(), "w_v": ColwiseParallel(), "w_o": RowwiseParallel()},
    )
    layer.num_heads //= mesh.size()
    layer.num_kv_heads //= mesh.size()
    return layer


def check_shares(layer: MultiHeadAttention, num_processes: int) -> None:
    check_type("layer", layer, MultiHeadAttention)
    check_size("num_processes", num_processes)
    name = "num_heads" if layer.num_kv_heads == layer.num_heads else "num_kv_heads"
    check_divides("num_processes", num_processes, name, layer.num_kv_heads)  # which divides num_heads


def run_in_group(layer: MultiHeadAttention, query: Tensor) -> ShardReport:
    """Cut the layer over the processes of the default group, and go forward and backward once, without dropout.

    query: (B, T, d_model), the same in every process.
    """
    num_processes = dist.get_world_size()
    device = "cuda" if torch.cuda.device_count() >= num_processes else "cpu"
    mesh = init_device_mesh(device, (num_processes,))
    layer = shard(layer.to(device).eval(), mesh)
    query = query.detach().to(device).requires_grad_()
    shared = DTensor.from_local(query, mesh, [Replicate()])  # q, k and v add up its gradient before it travels
    with AllReduceBytes() as forward:
        out = layer(shared)
    with AllReduceBytes() as backward:
        (out.square().sum() / 2).backward()
    parameters: dict[str, Any] = dict(layer.named_parameters())  # DTensors now
    held = sum(p.to_local().untyped_storage().nbytes() for p in parameters.values())
    figures = torch.tensor([layer.num_heads, held, forward.total, backward.total], device=device)
    gathered = [torch.empty_like(figures) for _ in range(num_processes)]
    dist.all_gather(gathered, figures)  # numbers; all_gather_object() would send pickles
    shares = [Share(*figures.tolist()) for figures in gathered]
    gradients = {name: p.grad.full_tensor() for name, p in parameters.items() if p.grad is not None}
    results = {"out": out.detach(), "query": query.grad, **gradients}
    results = {name: result.cpu().clone() for name, result in results.items()}  # clone() waits for what still comes
    return ShardReport(results.pop("out"), results, shares)


def run_sharded(layer: MultiHeadAttention, query: Tensor, num_processes: int = 2, *, timeout: int = 60) -> ShardReport:
    """The layer's self-attention forward and backward once, in eval mode, by that many new processes on this machine.

    query: (B, T, d_model); timeout: whole seconds. A script must call it under `if __name__ == "__main__":`. Raises
    ValueError for heads that do not divide by the processes, no token, and a layer that cannot be sent to them;
    RuntimeError when a process fails or is killed, TimeoutError. However it ends, no process is left.
    """
    check_shares(layer, num_processes)
    widths = layer.d_model, layer.key_dim, layer.value_dim
    check_inputs(query, None, None, None, widths, layer.num_heads, layer.w_o.weight)
    check_size("query.numel()", query.numel())
    check_size("timeout", timeout)
    with TemporaryDirectory() as name:
        folder = Path(name)
        try:
            torch.save((layer, query), folder / "job")
            _load(folder / "job", type(layer), torch.nn.Linear)  # as each process will
        except Exception as error:  # pickle raises several kinds
            raise ValueError(f"layer cannot be sent to other processes: {error}; without its hooks it can") from error
        run_processes(partial(_work, num_processes, folder, timeout, type(layer)), num_processes, folder, timeout)
        return _load(folder / "report", ShardReport, Share)


def _load(file: Path, *kinds: type) -> Any:
    """What torch.save() wrote: tensors, plain values and these classes. Anything else could run code: refused."""
    with torch.serialization.safe_globals(list(kinds)):
        if others := torch.serialization.get_unsafe_globals_in_checkpoint(file):
            raise ValueError(f"it holds {', '.join(sorted(others))}")
        return torch.load(file, weights_only=True)


def _work(num_processes: int, folder: Path, timeout: int, kind: type[MultiHeadAttention], rank: int) -> None:
    """What each new process does; the first one writes the report."""
    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    os.environ["GLOO_SOCKET_IFNAME"] = loopback  # no look-up of the host's name
    layer, query = _load(folder / "job", kind, torch.nn.Linear)
    # A file needs no free port, and FileStore, unlike its URL, takes any name
    store = dist.FileStore(str(folder / "store"), num_processes)  # pyright: ignore  (documented)
    dist.init_process_group(store=store, rank=rank, world_size=num_processes, timeout=timedelta(seconds=timeout))
    report = run_in_group(layer, query)
    if rank == 0:
        torch.save(report, folder / "report")


def main() -> None:
    if "RANK" not in os.environ:
        sys.exit("one process has nobody to share with: torchrun --standalone --nproc-per-node 2 -m mhsa.shard")
    dist.init_process_group()
    torch.manual_seed(0)  # the same layer in every process
    layer, query = MultiHeadAttention(512, 8), torch.randn(1, 128, 512)
    alone, nbytes = layer(query), sum(p.nbytes for p in layer.parameters())
    report = run_in_group(layer, query)
    if dist.get_rank() == 0:
        print(
            f"B=1, T=128, d_model=512, h=8, float32: {nbytes:,} bytes of parameters\n{report}\n"
            f"largest difference from one process: {(report.out - alone).abs().max():.0e}"
        )
    leave(0)


if __name__ == "__main__":
    main()
