"""The files that make a folder of exported sources a package of a build system.

    arduino      library.properties                        a library of the flat layout
    platformio   library.json
    esp-idf      CMakeLists.txt, idf_component.yml         a component
    zephyr       zephyr/module.yml, CMakeLists.txt, Kconfig  a module

They can be in one folder together, and name the sources that `export` writes there. The project
chooses where TFLM comes from, except with ESP-IDF, where its TFLM component is named. It must not
know files: it returns texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tflm_planner.device.cpp.names import CppNames
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.targets import Target

VERSION = "1.0.0"
"""The version of every package. It is fixed because models have no version."""
_IDF_CHIPS = ("esp32", "esp32s2", "esp32s3", "esp32c3", "esp32c6", "esp32h2", "esp32p4")
_RELEASE = re.compile(r"(esp32\w*)/esp-nn-(\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class PackageContents:
    """The contents of a package. names: names of the model. target: the target of its arena
    size."""

    names: CppNames
    target: Target

    @property
    def about(self) -> str:
        """One line that describes the package."""
        return f"The model {self.names.snake} for TFLite Micro: data, operators and arena size"

    @property
    def headers(self) -> tuple[str, ...]:
        """Headers that an application includes."""
        return tuple(self.names.file(kind) for kind in ("model_data.h", "op_resolver.h", "arena.h"))

    @property
    def source(self) -> str:
        """The one file that is compiled."""
        return self.names.file("model_data.cpp")


def _arduino(of: PackageContents) -> Mapping[str, str]:
    rows = {
        "name": f"{of.names.snake}_model",
        "version": VERSION,
        "author": "tflm-plan export",
        "maintainer": "tflm-plan export",
        "sentence": of.about,
        "paragraph": f"Its arena is for {of.target.id}.",
        "category": "Data Processing",
        "url": "https://www.tensorflow.org/lite/microcontrollers",
        "architectures": "*",
        "includes": ",".join(of.headers),
    }
    return {"library.properties": "".join(f"{key}={value}\n" for key, value in rows.items())}


def _platformio(of: PackageContents) -> Mapping[str, str]:
    manifest = {
        "name": f"{of.names.snake}_model",
        "version": VERSION,
        "description": f"{of.about}. Its arena is for {of.target.id}.",
        "keywords": ["tflite-micro", "model"],
        "headers": list(of.headers),
        "frameworks": "*",
        "platforms": "*",
        "build": {"srcDir": ".", "includeDir": ".", "srcFilter": [f"+<{of.source}>"]},
    }
    return {"library.json": json.dumps(manifest, indent=2) + "\n"}


def _esp_idf(of: PackageContents) -> Mapping[str, str]:
    chip = of.target.id.split("/")[0]
    release = _RELEASE.match(of.target.id)
    manifest = [f'version: "{VERSION}"', f'description: "{of.about}"']
    manifest += ["targets:", f"  - {chip}"] if chip in _IDF_CHIPS else []
    manifest += ["dependencies:", "  espressif/esp-tflite-micro:", '    version: ">=1.4.0"']
    manifest += ["    require: public"]  # headers of this package include those of TFLM
    if release:
        manifest += ["  # Scratch changes between releases: the arena is that of this one."]
        manifest += ["  espressif/esp-nn:", f'    version: "=={release[2]}"']
    lean = " REQUIRES lean" if of.target.lean else ""
    build = f'idf_component_register(SRCS "{of.source}" INCLUDE_DIRS "."{lean})\n'
    return {"CMakeLists.txt": build, "idf_component.yml": "\n".join(manifest) + "\n"}


def _zephyr(of: PackageContents) -> Mapping[str, str]:
    name = f"{of.names.snake}_model"
    option = name.upper()
    module = f"name: {name}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n"
    build = (
        f"if(CONFIG_{option})\n"
        f"  zephyr_library()\n"
        f"  zephyr_library_sources(../{of.source})\n"
        f"  zephyr_include_directories(..)\n"
        f"endif()\n"
    )
    choice = (
        f'config {option}\n\tbool "{of.about}"\n\tdepends on TENSORFLOW_LITE_MICRO\n\tdefault y\n'
    )
    return {
        "zephyr/module.yml": module,
        "zephyr/CMakeLists.txt": build,
        "zephyr/Kconfig": choice,
    }


_WRITERS: Mapping[str, Callable[[PackageContents], Mapping[str, str]]] = {
    "arduino": _arduino,
    "platformio": _platformio,
    "esp-idf": _esp_idf,
    "zephyr": _zephyr,
}


def packages(kinds: str, names: CppNames, target: Target) -> dict[str, str]:
    """File name -> text, for all files that make a folder of exported sources a package. kinds:
    some of "arduino", "platformio", "esp-idf" and "zephyr", separated by commas. target: the target
    of the arena size. Raises UsageError for other kinds."""
    texts: dict[str, str] = {}
    for kind in filter(None, (word.strip() for word in kinds.split(","))):
        if kind not in _WRITERS:
            raise UsageError(f"--package {kind!r} is unknown; choose from {', '.join(_WRITERS)}")
        texts |= _WRITERS[kind](PackageContents(names, target))
    return texts
