"""Prebuilt programs for a machine with a GPU that cannot build them:

    bundle.py unpack BUILD     unpacks gpu-packages/programs.tar.xz into BUILD, if it holds another
                               bundle's programs or none
    bundle.py size [FOLDER]    prints the bytes of gpu-packages/, which has to be transferred; fails at 20 MiB

BUILD/unpacked holds the bundle's SHA-256. If BUILD holds programs that were built there (build.ninja), it
is left alone."""

import hashlib
import os
import shutil
import sys
import tarfile

PACKED = "gpu-packages/programs.tar.xz"
MOST_BYTES = 20 << 20
PROGRAMS = (
    "tools/stowage/stowage",
    "tests/gpu/gpu_probe",
    "tests/gpu/gpu_kernel_tests",
    "tests/gpu/gpu_trainer_tests",
)


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def stamp_of(build):
    try:
        with open(os.path.join(build, "unpacked"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def unpack(build, packed=PACKED):
    """Returns a message. Raises a ValueError that says what to do."""
    if os.path.exists(os.path.join(build, "build.ninja")):
        return f"{build} was built here"
    if not os.path.exists(packed):
        stale = f"; what lies in {build} is some other bundle's" if stamp_of(build) else ""
        raise ValueError(
            f"there is no {packed}: run 'tools/gpu-check bundle' where there is a network and carry "
            f"gpu-packages by name, or run 'tools/gpu-check build' first{stale}"
        )
    digest = digest_of(packed)
    if stamp_of(build) == digest:
        return f"{build} holds this bundle, {digest[:12]}"
    fresh = build + ".fresh"
    for folder in (fresh, build):
        shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(packed) as tar:
        tar.extractall(fresh, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    missing = [name for name in PROGRAMS if not os.access(os.path.join(fresh, name), os.X_OK)]
    if missing:
        raise ValueError(f"{packed} lacks {', '.join(missing)}: run 'tools/gpu-check bundle' again")
    # written last, so that an interrupted unpacking is repeated
    with open(os.path.join(fresh, "unpacked"), "w", encoding="ascii") as file:
        file.write(digest + "\n")
    os.rename(fresh, build)
    return f"unpacked bundle {digest[:12]} into {build}"


def size_of(folder):
    return sum(
        os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(folder) for name in names
    )


def main(words):
    if words[:1] == ["unpack"] and len(words) == 2:
        try:
            print("tools/gpu-check:", unpack(words[1]))
        except (ValueError, OSError, EOFError, tarfile.TarError) as error:
            sys.exit(f"tools/gpu-check: error: {error}")
    elif words[:1] == ["size"] and len(words) <= 2:
        folder = words[1] if len(words) == 2 else os.path.dirname(PACKED)
        size = size_of(folder)
        print(
            f"{folder}/ has {size / 2**20:.1f} MiB, of at most {MOST_BYTES >> 20}: carry it by name, "
            "git ignores it"
        )
        if size >= MOST_BYTES:
            sys.exit("tools/gpu-check: error: that is too much to be carried")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
