"""Prebuilt programs for a machine with a GPU that cannot build them:

    bundle.py programs         prints the names of the programs, which are also targets of Ninja
    bundle.py code             prints the commit of this tree, and a revision that has its changes, too
    bundle.py pack BUILD CAPABILITY CODE [quick]
                               packs BUILD's programs into gpu-packages/programs.tar.xz. CODE: what `code`
                               printed before they were built. quick: less tightly, in a quarter of the time
    bundle.py unpack BUILD     unpacks gpu-packages/programs.tar.xz into BUILD, if it holds another
                               bundle's programs or none, and if they fit this card and this tree
    bundle.py size             checks that the bundle is whole, and prints the bytes of gpu-packages/, which
                               has to be transferred; fails at 20 MiB

The first file of the archive, bundle.json, has the commit, the revision and the compute capability.
BUILD/unpacked holds the bundle's SHA-256. If BUILD holds programs that were built there (build.ninja), it is
left alone."""

import hashlib
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile

FOLDER = "gpu-packages"
PACKED = FOLDER + "/programs.tar.xz"
ABOUT = "bundle.json"
MOST_BYTES = 20 << 20
PROGRAMS = (
    "tools/stowage/stowage",
    "tests/gpu/gpu_probe",
    "tests/gpu/gpu_kernel_tests",
    "tests/gpu/gpu_trainer_tests",
)
LIBRARY = re.compile(r"libstowage\.so\.0(\.\d+)*")
# Three of the programs hold the same kernels. Both dictionaries reach back far enough to find them again.
TIGHT, QUICK = ["-9"], ["--lzma2=preset=1,dict=128MiB"]
# What the programs are made of. Scripts and other tests may change without a new bundle.
TESTS = ("device", "gpu", "kernels", "pch", "src", "*.h")
SOURCES = (
    *("include", "kernels", "planner", "src", "tools/stowage", "*meson*"),
    *(f":(glob)tests/{name}{'' if name.endswith('.h') else '/**'}" for name in TESTS),
    *(":!*.py", ":!*.md"),
)
REBUILD = "run 'tools/gpu-check rebuild'"


def output(*command):
    """What the command prints, or None if it fails or is not there."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def git(*words):
    """None also where the tree that git finds is another one, around this tree."""
    if output("git", "rev-parse", "--show-prefix") != "":
        return None
    return output("git", "-c", "user.name=bundle", "-c", "user.email=bundle@localhost", *words)


def code():
    """The commit and the revision of this tree, with its changes of tracked files; None without git."""
    commit = git("describe", "--always", "--dirty", "--exclude", "*")
    revision = git("stash", "create") or git("rev-parse", "HEAD")
    return f"{commit} {revision}" if commit and revision else None


def changed(revision, *other):
    """The sources that differ between the revision and this tree, or another revision. None: git does not
    know the revision."""
    found = git("diff", "--name-only", revision, *other, "--", *SOURCES)
    return found if found is None else found.splitlines()


def named(files):
    return files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def text_of(*path):
    """None if the file cannot be read."""
    try:
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None


def stamp_of(build):
    return text_of(build, "unpacked")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def pack(build, capability, before, quick=False, folder=FOLDER):
    """Returns a message. Raises a ValueError that says what to do."""
    now = code() or "unknown unknown"
    before = before or now
    (commit, revision), then = now.split(), before.split()[1]
    if then != revision and (differ := changed(then, revision)) != []:
        raise ValueError(
            f"the sources changed while they were built ({named(differ or ['all'])}): {REBUILD} once more"
        )
    library = os.path.join(build, "src")
    found = sorted(name for name in os.listdir(library) if LIBRARY.fullmatch(name))
    names = [PROGRAMS[0], *("src/" + name for name in found), *PROGRAMS[1:]]
    missing = [name for name in names if not os.path.exists(os.path.join(build, name))]
    if missing or not found:
        raise ValueError(f"{build} lacks {', '.join(missing) or 'the library'}: build it first")
    about = {"commit": commit, "revision": revision, "capability": capability}
    packed, fresh = os.path.join(folder, "programs.tar.xz"), os.path.join(folder, "programs.new")
    for path in (packed, fresh):  # a failure must not leave an older bundle
        if os.path.exists(path):
            os.remove(path)
    with open(fresh, "wb") as file:
        xz = subprocess.Popen(
            ["xz", "--stdout", *(QUICK if quick else TIGHT)], stdin=subprocess.PIPE, stdout=file
        )
        try:
            with xz.stdin, tarfile.open(fileobj=xz.stdin, mode="w|") as tar:
                text = json.dumps(about).encode() + b"\n"
                info = tarfile.TarInfo(ABOUT)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
                for name in names:
                    tar.add(os.path.join(build, name), name)
        except BrokenPipeError:
            pass  # xz has said why
        status = xz.wait()
    if status != 0:
        os.remove(fresh)
        raise ValueError(f"xz failed with exit status {status}: there is no bundle; see the lines above")
    os.rename(fresh, packed)
    for name in ("commit", "capability"):
        write(os.path.join(folder, name), about[name])
    return f"packed commit {commit} for compute capability {capability}"


def about_bundle(tar):
    """The content of bundle.json; empty in an archive without one."""
    first = tar.next()
    return json.load(tar.extractfile(first)) if first and first.name == ABOUT else {}


def read_to_the_end(tar):
    """xz's checksums come last. Without this, some archives that are cut off would pass."""
    while tar.fileobj.read(1 << 20):
        pass


def fits(about):
    """What the bundle is, and what could not be compared. Raises a ValueError if the programs are for another
    card or of other sources. Code for compute capability 9.0 runs on no other."""
    if not about:
        raise ValueError(
            f"the bundle does not name its commit and its compute capability: {REBUILD} where it was made"
        )
    commit, capability, notes = about["commit"], about["capability"], []
    cards = output("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    card = re.sub(r"\D", "", cards.splitlines()[0].split(",")[-1]) if cards else None
    if not card:
        notes.append("nvidia-smi names no card to compare it with")
    elif card != capability:
        raise ValueError(
            f"the bundle is for compute capability {capability}, this card has {card}: run 'tools/gpu-check "
            f"bundle {card}' where there is a compiler"
        )
    tree = code()
    if not tree:
        notes.append("there is no git here to compare it with")
    else:
        tree, differ = tree.split()[0], changed(about["revision"])
        if differ or (differ is None and (commit != tree or commit == "unknown")):
            where = f" (in {named(differ)})" if differ else ""
            raise ValueError(f"the bundle is of commit {commit}, the tree is {tree}{where}: {REBUILD}")
        if differ is None:
            notes.append("its uncommitted changes are unknown here")
    return "; ".join([f"commit {commit} for compute capability {capability}", *notes])


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
        about = fits(json.loads(text_of(build, ABOUT) or "{}"))
        return f"{build} holds this bundle, {digest[:12]}: {about}"
    fresh = build + ".fresh"
    with tarfile.open(packed) as tar:
        about = fits(about_bundle(tar))
        for folder in (fresh, build):
            shutil.rmtree(folder, ignore_errors=True)
        tar.extractall(fresh, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        read_to_the_end(tar)
    missing = [name for name in PROGRAMS if not os.access(os.path.join(fresh, name), os.X_OK)]
    if missing:
        raise ValueError(f"{packed} lacks {', '.join(missing)}: run 'tools/gpu-check bundle' again")
    # written last, so that an interrupted unpacking is repeated
    write(os.path.join(fresh, "unpacked"), digest)
    os.rename(fresh, build)
    return f"unpacked bundle {digest[:12]} into {build}: {about}"


def check_whole(folder):
    """Raises a ValueError if the archive lacks something, or is not the one that the folder describes."""
    packed = os.path.join(folder, "programs.tar.xz")
    if not os.path.exists(packed):
        raise ValueError(f"there is no {packed}: run 'tools/gpu-check bundle'")
    with tarfile.open(packed) as tar:
        about = about_bundle(tar)
        members = {member.name: member for member in tar}
        read_to_the_end(tar)
    missing = [name for name in PROGRAMS if name not in members or not members[name].mode & 0o100]
    if not any(LIBRARY.fullmatch(os.path.basename(name)) for name in members):
        missing.append("the library")
    if missing:
        raise ValueError(f"{packed} lacks {', '.join(missing)}: {REBUILD}")
    for name in ("commit", "capability"):
        if about.get(name) != text_of(folder, name):
            raise ValueError(
                f"{packed} has the {name} {about.get(name, 'none')}, {folder}/{name} has "
                f"{text_of(folder, name) or 'none'}: {REBUILD}"
            )
    return about


def size_of(folder):
    return sum(
        os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(folder) for name in names
    )


def size(folder=FOLDER):
    """Returns a message. Raises a ValueError that says what to do."""
    about, total = check_whole(folder), size_of(folder)
    text = (
        f"{folder}/ has {total / 2**20:.1f} MiB, of at most {MOST_BYTES >> 20}, of commit {about['commit']} "
        f"for compute capability {about['capability']}: carry it by name, git ignores it"
    )
    if total >= MOST_BYTES:
        raise ValueError(text + "; that is too much to be carried")
    return text


def main(words):
    commands = {
        ("programs", 0): lambda: "\n".join(PROGRAMS),
        ("code", 0): lambda: code() or "",
        ("pack", 3): pack,
        ("pack", 4): lambda build, capability, before, _: pack(build, capability, before, quick=True),
        ("unpack", 1): unpack,
        ("size", 0): size,
    }
    command = commands.get((words[0] if words else "", len(words) - 1))
    if not command:
        sys.exit(__doc__)
    try:
        text = command(*words[1:])
        print(text if words[0] in ("programs", "code") else f"tools/gpu-check: {text}")
    except (ValueError, OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        sys.exit(f"tools/gpu-check: error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
