"""Installs the build into an empty folder and builds the examples in C and C++ against it, as a user would:
through pkg-config and, after the folder was moved, through CMake. install_test.py MESON BUILD CC CXX
PKG_CONFIG SOURCE CXX_SOURCE"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import example_test

# A host project: a program for each target, and one that uses only the headers.
CMAKE_LISTS = """cmake_minimum_required(VERSION 3.16)
project(host C)
find_package(stowage 0.1 CONFIG REQUIRED)
find_package(stowage 0.1 CONFIG REQUIRED)   # a host may have two parts that want it
foreach(kind stowage static)
  if(TARGET stowage::${kind})
    add_executable(host_${kind} train.c)
    target_compile_features(host_${kind} PRIVATE c_std_99)
    target_compile_options(host_${kind} PRIVATE -Wall -Wextra -pedantic -Werror)
    target_link_libraries(host_${kind} PRIVATE stowage::${kind})
  endif()
endforeach()
add_library(tensors STATIC tensors.c)
target_link_libraries(tensors PRIVATE stowage::stowage)
"""
TENSORS = """#include <stowage.h>
#include <stowage/dlpack.h>
int tensors(DLManagedTensorVersioned *tensor);
int tensors(DLManagedTensorVersioned *tensor) { return tensor->dl_tensor.ndim; }
"""


def check_cmake(prefix, source, cc, has):
    """`has`: the installed ones of "shared" and "static"."""
    configs = [
        os.path.join(folder, "stowageConfig.cmake")
        for folder, _, files in os.walk(prefix)
        if "stowageConfig.cmake" in files
    ]
    assert len(configs) == 1, configs
    # Check its paths even where there is no CMake.
    with open(configs[0], encoding="utf-8") as file:
        config = file.read()
    assert prefix not in config, "CMake's package cannot be moved"
    up = re.search(r'CMAKE_CURRENT_LIST_DIR}/([./]+)"', config)[1]
    assert os.path.realpath(os.path.join(os.path.dirname(configs[0]), up)) == os.path.realpath(prefix), up
    paths = {path for path in re.findall(r'"\$\{_stowage_prefix\}/([^"$]+)"', config)} | set(
        re.findall(r'foreach\(_stowage_file "([^"]+)" "([^"]+)"\)', config)[0]
    )
    named = {os.path.basename(path) for path in paths}
    assert {"stowage.h"} < named and not re.search(r"@\w+@", config), named
    for path in paths:
        assert (
            os.path.exists(os.path.join(prefix, path))
            or ("static" not in has and path.endswith(".a"))
            or ("shared" not in has and ".so" in path)
        ), path
    cmake = shutil.which("cmake")
    if not cmake:
        print("there is no cmake: its package was looked at, and no program built by it")
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(source, os.path.join(folder, "train.c"))
        for name, text in (("CMakeLists.txt", CMAKE_LISTS), ("tensors.c", TENSORS)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        environment = dict(os.environ, CC=cc)
        configure = [
            cmake,
            "-S",
            folder,
            "-B",
            os.path.join(folder, "build"),
            f"-DCMAKE_PREFIX_PATH={prefix}",
            "-DCMAKE_LIBRARY_ARCHITECTURE=" + architecture_of(configs[0]),
        ]
        for command in (configure, [cmake, "--build", os.path.join(folder, "build")]):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        programs = [
            kind
            for kind in ("stowage", "static")
            if os.path.exists(os.path.join(folder, "build", "host_" + kind))
        ]
        assert programs == ["stowage", *(["static"] if "static" in has else [])], programs
        for kind in programs:
            # The program finds the library by its RUNPATH.
            example_test.check(os.path.join(folder, "build", "host_" + kind), dict(os.environ))
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CMAKE_LISTS.replace("stowage 0.1", "stowage 7.0"))
        done = subprocess.run(configure, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "7.0" in done.stderr, "a version of the future is taken"


def architecture_of(config):
    """x86_64-linux-gnu for lib/x86_64-linux-gnu/cmake/…, Debian's library folder; otherwise empty."""
    parts = config.split(os.sep)
    at = parts.index("cmake")
    return parts[at - 1] if parts[at - 1] not in ("lib", "lib64") else ""


def main():
    meson, build, cc, cxx, pkg_config, source, cxx_source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as root:
        # --no-rebuild: this runs inside the build's own test run.
        subprocess.run(
            [*shlex.split(meson), "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        found = [folder for folder, _, files in os.walk(root) if "stowage.pc" in files]
        assert len(found) == 1, f"stowage.pc in {found}"
        environment = dict(
            os.environ,
            PKG_CONFIG_LIBDIR=found[0],
            PKG_CONFIG_SYSROOT_DIR=root,
            PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
            PKG_CONFIG_ALLOW_SYSTEM_LIBS="1",
        )
        flags = subprocess.run(
            [pkg_config, "--cflags", "--libs", "stowage"],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout.split()
        include = next(flag[2:] for flag in flags if flag.startswith("-I" + root))
        programs = [os.path.join(root, "train"), os.path.join(root, "train_cpp")]
        strict = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
        subprocess.run([*shlex.split(cc), "-std=c99", *strict, source, "-o", programs[0], *flags], check=True)
        # A copy of the source elsewhere finds only the installed header, not the one next to the original.
        alone = shutil.copy(cxx_source, root)
        subprocess.run(
            [*shlex.split(cxx), "-std=c++20", *strict, alone, "-o", programs[1], *flags], check=True
        )
        libraries = [flag[2:] for flag in flags if flag.startswith("-L")]
        assert libraries and {"libstowage.so.0", "libstowage.a"} & set(os.listdir(libraries[0])), libraries
        command = os.path.join(os.path.dirname(include), "bin", "stowage")
        # Excludes -Dtools=false and a distribution's installation.
        if os.path.exists(command) and not include.endswith("/usr/include"):
            subprocess.run([command, "--version"], check=True, stdout=subprocess.DEVNULL, env={})
        for program in programs:
            example_test.check(program, dict(os.environ, LD_LIBRARY_PATH=":".join(libraries)))
        prefix = os.path.dirname(include)
        assert os.path.exists(os.path.join(include, "stowage", "dlpack.h"))
        with open(os.path.join(prefix, "share", "doc", "stowage", "LICENSE"), encoding="utf-8") as file:
            assert "MIT License" in file.read()
        has = [
            kind
            for kind, name in (("shared", "libstowage.so.0"), ("static", "libstowage.a"))
            if name in os.listdir(libraries[0])
        ]
        moved = shutil.move(prefix, os.path.join(root, "moved"))
        check_cmake(moved, source, shlex.split(cc)[-1], has)


main()
