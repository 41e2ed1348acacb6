"""Tests bindings/python with the library: python_test.py SOURCE_ROOT LIBRARY. Also tests arrays of NumPy
and PyTorch if they are installed."""

import array
import ast
import copy
import ctypes
import gc
import importlib.util
import inspect
import json
import math
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import weakref

ROOT, LIBRARY = pathlib.Path(sys.argv[1]), sys.argv[2]
FOLDER = ROOT / "bindings/python"
sys.path.insert(0, str(FOLDER))

import stowage  # noqa: E402
from stowage import _abi, _library, _options, _tensors  # noqa: E402

GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 64,
    "n_positions": 16,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 2,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "resid_pdrop": 0.0,
}
BERT = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "vocab_size": 64,
    "max_position_embeddings": 16,
    "hidden_size": 32,
    # type_vocab_size is absent, so there are two token types
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "id2label": {"0": "a", "1": "b", "2": "c"},
}
numpy = __import__("numpy") if importlib.util.find_spec("numpy") else None
torch = __import__("torch") if importlib.util.find_spec("torch") else None


def tokens_of(samples=4, length=16, seed=1):
    rows = []
    for _ in range(samples):
        rows.append([])
        for _ in range(length):
            seed = (seed * 1664525 + 1013904223) % 2**32
            rows[-1].append(seed >> 26)
    return rows


class World:
    def __init__(self, model=None, hook=None, trainer=(), **plan):
        self.device = stowage.Device("cpu", threads=2)
        self.model = model or stowage.Model(GPT2)
        self.plan = stowage.Plan(
            self.model, 4, device=self.device, sequence=16, memory_bytes=64 << 20, state_bits=32, **plan
        )
        self.trainer = stowage.Trainer(
            self.device, self.model, self.plan, gradient_hook=hook, **dict(trainer)
        )

    def weights(self):
        return {one.name: bytes(self.trainer.tensor(i).memory) for i, one in enumerate(self.model.tensors)}


def run_program(text):
    """Runs a program in a process of its own. Returns its exit code, stdout and stderr."""
    begin = (
        f"import gc, os, signal, sys, threading\nsys.path.insert(0, {str(FOLDER)!r})\nimport stowage\n"
        f"stowage.load({LIBRARY!r})\n"
        "class world:\n    def __init__(self, **more):\n        self.device = stowage.Device('cpu', "
        f"threads=2)\n        self.model = stowage.Model({GPT2!r})\n"
        "        self.plan = stowage.Plan(self.model, 4, device=self.device, sequence=16, "
        "memory_bytes=64 << 20)\n"
        "        self.trainer = stowage.Trainer(self.device, self.model, self.plan, **more)\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", begin + text], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


class Abi(unittest.TestCase):
    def test_is_generated_from_the_header(self):
        generated = subprocess.run(
            [sys.executable, FOLDER / "generate_abi.py", ROOT / "include/stowage.h"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self.assertEqual(
            generated,
            (FOLDER / "stowage/_abi.py").read_text(encoding="utf-8"),
            "run bindings/python/generate_abi.py",
        )

    def test_has_the_sizes_and_offsets_that_compilers_give(self):
        asserted = (ROOT / "tests/api/abi_test.c").read_text(encoding="utf-8")
        sizes = re.findall(r"\bSIZE\((stw_\w+), (\d+)\)", asserted)
        offsets = re.findall(r"\bAT\((stw_\w+), (\w+), (\d+)\)", asserted)
        self.assertGreater(len(sizes), 20)
        for name, size in sizes:
            self.assertEqual(ctypes.sizeof(getattr(_abi, name)), int(size), name)
        for name, field, offset in offsets:
            self.assertEqual(getattr(getattr(_abi, name), field).offset, int(offset), (name, field))
        # All structs and fields of the header are there.
        self.assertEqual(
            {name for name, _ in sizes},
            {
                name
                for name, kind in vars(_abi).items()
                if name.startswith("stw_") and hasattr(kind, "_fields_")
            },
        )
        for name, _ in sizes:
            self.assertEqual(
                [field for struct, field, _ in offsets if struct == name],
                [field for field, *_ in getattr(_abi, name)._fields_],
                name,
            )
        constants = dict(re.findall(r"\bVALUE\((STW_\w+), (-?\d+)\)", asserted))
        self.assertEqual(
            {name: int(value) for name, value in constants.items()},
            {
                name: value
                for name, value in vars(_abi).items()
                if name.startswith("STW_") and "_VERSION_" not in name
            },
        )

    def test_has_every_entry(self):
        symbols = (ROOT / "tests/api/symbols.txt").read_text(encoding="utf-8").split()
        self.assertEqual(sorted(_abi.FUNCTIONS), sorted(symbols))

    def test_words_and_masks_are_complete(self):
        self.assertEqual(
            set(_options.MASKED.values()), {name for name in vars(_abi) if name.startswith("STW_SET_")}
        )
        for kind, field in _options.MASKED:
            self.assertIn(field, dict(getattr(_abi, kind)._fields_))
        for prefix in _options.NAMED.values():
            self.assertTrue(any(name.startswith(prefix) for name in vars(_abi)), prefix)


class Types(unittest.TestCase):
    """Compares __init__.pyi, which no program executes, with the package."""

    def test_agree_with_the_package(self):
        stub = ast.parse((FOLDER / "stowage/__init__.pyi").read_text(encoding="utf-8"))
        self.assertTrue((FOLDER / "stowage/py.typed").exists())
        declared = {one.name: one for one in stub.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
        real = {name: getattr(stowage, name) for name in stowage.__all__} | {
            "View": _tensors.View,
            "Gradients": stowage.trainer.Gradients,
            "_Handle": _library.Handle,
        }
        self.assertEqual({name for name in declared if name not in ("_HasDlpack",)}, set(real))
        for name, one in declared.items():
            if name in real:
                self.check(name, one, real[name])

    def check(self, name, declared, real):
        if isinstance(declared, ast.FunctionDef):
            self.assertEqual(self.arguments(declared), [*inspect.signature(real).parameters], name)
            return
        methods = {one.name: one for one in declared.body if isinstance(one, ast.FunctionDef)}
        public = {
            attribute
            for attribute, value in vars(real).items()
            if not attribute.startswith("_")
            and (callable(value) or isinstance(value, (property, classmethod)))
        }
        fields = {one.target.id for one in declared.body if isinstance(one, ast.AnnAssign)}
        own = public - {"pointer", "close"}  # members of _Handle for use inside the package
        self.assertLessEqual(own, set(methods) | fields, name)
        for method, one in methods.items():
            is_property = any(
                getattr(decorator, "id", None) == "property" for decorator in one.decorator_list
            )
            if method == "__getattr__":  # of an Info, which forwards the struct's fields
                continue
            self.assertEqual(
                is_property, isinstance(inspect.getattr_static(real, method), property), (name, method)
            )
            if not is_property:
                found = inspect.signature(
                    inspect.unwrap(
                        inspect.getattr_static(real, method).__func__
                        if isinstance(inspect.getattr_static(real, method), classmethod)
                        else getattr(real, method)
                    )
                )
                self.assertEqual(self.arguments(one), [*found.parameters], (name, method))
                defaults = [
                    bool(argument.default is not inspect.Parameter.empty)
                    for argument in found.parameters.values()
                    if argument.kind == argument.POSITIONAL_OR_KEYWORD
                ]
                self.assertEqual(sum(defaults), len(one.args.defaults), (name, method))

    def arguments(self, function):
        arguments = function.args
        return [
            one.arg
            for one in [
                *arguments.args,
                *([arguments.vararg] if arguments.vararg else []),
                *arguments.kwonlyargs,
                *([arguments.kwarg] if arguments.kwarg else []),
            ]
        ]


class Library(unittest.TestCase):
    def test_names_its_version(self):
        self.assertEqual(stowage.version(), (0, 1, 0))
        self.assertIn("stowage 0.1.0", stowage.build_info())
        self.assertIn("nano", stowage.presets())
        self.assertEqual(stowage.devices()[0].backend, "cpu")
        self.assertIn("rtx4090", [one.name for one in stowage.profiles()])

    def test_has_the_versions_of_its_package_and_header(self):
        package = (FOLDER / "pyproject.toml").read_text(encoding="utf-8")
        self.assertEqual(stowage.__version__, re.search(r'^version = "(.+)"$', package, flags=re.M)[1])
        self.assertEqual(stowage.__version__, ".".join(map(str, stowage.version())))

    def test_an_error_lists_where_it_looked_for_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "stowage")
            shutil.copytree(FOLDER / "stowage", package)
            show = (
                f"import sys\nsys.path.insert(0, {folder!r})\nimport stowage\n"
                "print(stowage.__version__)\ntry:\n    stowage.load(*sys.argv[1:])\n"
                "except OSError as error:\n"
                "    print(error)"
            )

            def output_of(*words):
                # Hides the installed libraries of this system.
                hide = "import ctypes.util\nctypes.util.find_library = lambda name: None\n"
                done = subprocess.run(
                    [sys.executable, "-B", "-c", hide + show, *words],
                    capture_output=True,
                    text=True,
                    check=True,
                    env={"LD_LIBRARY_PATH": "/no/such/folder"},
                )
                return done.stdout.splitlines()

            version, complaint = output_of()
            self.assertEqual(version, stowage.__version__)
            self.assertEqual(complaint.count("\n"), 0)
            for part in (
                str(package / "libstowage.so.0") + " (no such file)",
                "LD_LIBRARY_PATH is '/no/such/folder'",
                "meson install",
                "stowage.load(path)",
            ):
                self.assertIn(part, complaint)
            self.assertRegex(
                output_of("/no/such/file.so")[1], r"looked at /no/such/file\.so \(.*No such file"
            )
            (package / "libstowage.so.0").write_bytes(b"\x7fELF, but no more")
            self.assertRegex(output_of()[1], r"looked at .*/stowage/libstowage\.so\.0 \(")
            self.assertRegex(output_of("libm.so.6")[1], "libm.so.6 is not Stowage's library")

    def test_failures_are_exceptions(self):
        with self.assertRaises(stowage.Error) as raised:
            stowage.Model("no/such/model")
        self.assertEqual(raised.exception.name, "STW_IO_ERROR")
        self.assertIn("no such file or folder", str(raised.exception))
        with self.assertRaisesRegex(TypeError, 'no option "adaptor_rank"; there are .*adapter_rank'):
            stowage.Model("nano", adaptor_rank=3)
        with self.assertRaisesRegex(ValueError, 'precision "fp8": expected one of .*bf16'):
            stowage.Plan(stowage.Model("nano"), 4, precision="fp8")
        with self.assertRaisesRegex(TypeError, 'no option "set_mask"'):
            stowage.Model("nano", set_mask=1)
        with self.assertRaisesRegex(stowage.Error, "STW_BAD_ARGUMENT"):
            stowage.Model("nano", dropout=7)

    def test_over_budget_is_an_answer(self):
        with self.assertRaises(stowage.OverBudget) as raised:
            stowage.Plan(stowage.Model("nano"), 4, sequence=64, memory_bytes=1 << 20, device="cpu")
        self.assertGreater(raised.exception.bytes_needed, 1 << 20)
        self.assertEqual(raised.exception.plan.info.minimum_bytes, raised.exception.bytes_needed)
        self.assertTrue(raised.exception.plan.relaxations)
        self.assertIn("does not fit", raised.exception.plan.report)
        self.assertIsInstance(pickle.loads(pickle.dumps(raised.exception)), stowage.OverBudget)
        world = World()
        with self.assertRaises(stowage.OverBudget) as raised:
            world.trainer.replan(1)
        self.assertGreater(raised.exception.bytes_needed, 1000)
        with self.assertRaises(stowage.OverBudget) as raised:
            stowage.longest_sequence(world.model, 4, memory_bytes=1, device="cpu")
        least = raised.exception.bytes_needed
        self.assertEqual(stowage.longest_sequence(world.model, 4, memory_bytes=least, device="cpu"), 1)

    def test_a_source_and_a_config_are_one_too_many(self):
        with self.assertRaisesRegex(stowage.Error, "STW_BAD_ARGUMENT: .*either source or config_json"):
            stowage.Model("nano", config_json="{}")

    def test_a_signal_may_come_where_uses_are_counted(self):
        """A signal handler may call the package there, and collected objects may be released there too."""
        code, out, complaint = run_program("""
w = world()
stowage._library._lock.acquire()   # as if in its middle, on this thread
w.trainer.cancel()
del w.plan
gc.collect()
stowage._library._lock.release()
print(w.trainer.progress.step)
""")
        self.assertEqual((code, out, complaint), (0, "0\n", ""))

    def test_an_object_may_be_closed_while_other_threads_use_it(self):
        code, out, complaint = run_program("""
sys.setswitchinterval(1e-5)
ends = []
def ask(trainer):
    try:
        while True:
            trainer.progress
    except ValueError as error:
        ends.append(str(error))
for _ in range(20):
    w = world()
    asks = threading.Thread(target=ask, args=(w.trainer,))
    asks.start()
    while True:
        try:
            w.trainer.close()
            break
        except RuntimeError:   # in use
            pass
    asks.join()
print(set(ends), len(ends))
""")
        self.assertEqual((code, out, complaint), (0, "{'this Trainer is closed'} 20\n", ""))

    def test_closed_objects_refuse_calls(self):
        model = stowage.Model("nano")
        with model:
            self.assertEqual(model.info.layers, 4)
        with self.assertRaisesRegex(ValueError, "this Model is closed"):
            model.info
        model.close()
        world = World()
        world.device.close()
        with self.assertRaisesRegex(ValueError, "this Trainer is closed"):
            world.trainer.progress
        trainer = World().trainer  # keeps its device, which nothing else refers to
        gc.collect()
        self.assertEqual(trainer.progress.step, 0)

    def test_pack_with_constraints(self):
        offsets, found = stowage.pack(
            [(0, 10, 3), (0, 10, 8), (0, 10, 5), (4, 6, 8)],
            [None, {"alignment": 64, "gaps": [(4, 6)]}, {"alignment": 64}, {"offset": 0}],
        )
        self.assertEqual((offsets, found.height, found.answer), ([8, 0, 64, 0], 69, "optimal"))
        for wrong in [[None], [None, {"align": 1}], [None, {"gaps": [(1,)]}]]:
            with self.assertRaises(ValueError):
                stowage.pack([(0, 1, 2), (0, 1, 2)], wrong)

    def test_pack(self):
        offsets, found = stowage.pack([(0, 2, 10), (1, 3, 5), (2, 4, 10)])
        self.assertEqual([found.answer, found.height], ["optimal", 15])
        self.assertEqual(len(offsets), 3)
        with self.assertRaises(stowage.Error) as raised:
            stowage.pack([(0, 2, 10), (1, 3, 5)], capacity=14)
        self.assertEqual([raised.exception.name, raised.exception.bytes_needed], ["STW_OVER_BUDGET", 15])


class Lifetimes(unittest.TestCase):
    def test_callbacks_of_an_older_library_know_less(self):
        progress = _abi.stw_progress(struct_size=_abi.stw_progress.loss.offset, step=3, loss=5.0)
        self.assertEqual(
            (_library.copied(ctypes.pointer(progress)).step, _library.copied(ctypes.pointer(progress)).loss),
            (3, 0.0),
        )
        progress.struct_size = 2 * ctypes.sizeof(progress)  # a newer library with a larger struct
        self.assertEqual(_library.copied(ctypes.pointer(progress)).loss, 5.0)

    def test_callbacks_live_as_long_as_their_caller(self):
        messages = []
        device = stowage.Device("cpu", log=lambda *message: messages.append(message))
        model = stowage.Model(GPT2)
        trainer = stowage.Trainer(
            device, model, stowage.Plan(model, 4, device=device, sequence=16, memory_bytes=64 << 20)
        )
        del device
        gc.collect()
        trainer.step([[1, 2]], [[-100, -100]], learning_rate=1e-3)
        self.assertEqual(len(messages), 1)

    def test_memory_of_the_program(self):
        given = []

        class Block:  # reports its release
            def __init__(self, count):
                self.memory = (ctypes.c_uint8 * count)()
                given.append(weakref.ref(self.memory))

        def trained(**options):
            device = stowage.Device("cpu", threads=2, **options)
            model = stowage.Model(GPT2)
            plan = stowage.Plan(model, 4, device=device, sequence=16, memory_bytes=64 << 20, state_bits=32)
            trainer = stowage.Trainer(device, model, plan)
            trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-3)
            planned = trainer.replan(plan.info.minimum_bytes)
            trainer.step(tokens_of(seed=3), tokens_of(seed=7), learning_rate=1e-3)
            return trainer, planned, [bytes(trainer.tensor(i).memory) for i in range(len(model.tensors))]

        trainer, planned, weights = trained(memory=lambda count: Block(count).memory)
        self.assertEqual([one() is not None for one in given], [False, True])
        self.assertGreaterEqual(len(given[1]()), planned.info.arena)
        begin = ctypes.addressof(given[1]())
        self.assertTrue(begin <= trainer.tensor(0)._managed.dl_tensor.data < begin + len(given[1]()))
        self.assertEqual(weights, trained()[2])
        trainer.close()
        self.assertIsNone(given[1]())

    def test_memory_that_cannot_be_used(self):
        def refused(memory):
            device, model = stowage.Device("cpu", threads=2, memory=memory), stowage.Model(GPT2)
            plan = stowage.Plan(model, 4, device=device, sequence=16, memory_bytes=64 << 20)
            with self.assertRaises(stowage.Error) as raised:
                stowage.Trainer(device, model, plan)
            self.assertEqual(raised.exception.name, "STW_OUT_OF_MEMORY")
            return raised.exception.__cause__

        def fails(_):
            raise MemoryError("no more")

        class OfAGpu:  # DLPack's constant for a GPU
            def __init__(self, count):
                self.shape = (ctypes.c_int64 * 1)(count)

            def __dlpack__(self, max_version=None):
                managed = _tensors.DLManagedTensorVersioned(major=1, minor=0)
                managed.dl_tensor = _tensors.DLTensor(
                    4096, _tensors.DLDevice(2, 0), 1, _tensors.DLDataType(1, 8, 1), self.shape, None, 0
                )
                capsule = _tensors._new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None)
                self.keeps = managed, capsule
                return capsule

        self.assertIsNone(refused(lambda _: None))
        self.assertEqual(str(refused(fails)), "no more")
        self.assertRegex(
            str(refused(lambda count: bytearray(count // 2))), "bytes of memory were expected, found"
        )
        self.assertRegex(str(refused(bytes)), "may be written to")
        self.assertRegex(str(refused(lambda count: memoryview(bytearray(2 * count))[::2])), "without holes")
        self.assertRegex(str(refused(OfAGpu)), "another device")
        self.assertRegex(str(refused(lambda count: [0])), "bytes-like")
        self.assertEqual(
            run_program(
                "device = stowage.Device('cpu', memory=lambda count: sys.exit(7))\n"
                f"model = stowage.Model({GPT2!r})\n"
                "stowage.Trainer(device, model, stowage.Plan(model, 4, device=device, sequence=16, "
                "memory_bytes=64 << 20))\n"
            )[0],
            7,
        )

    def test_a_hook_makes_no_reference_cycle(self):
        world = World(hook=lambda _: None)
        gone = weakref.ref(world.trainer)
        gc.disable()
        try:
            world.trainer = None
            self.assertIsNone(gone())
        finally:
            gc.enable()

    def test_objects_in_use_are_not_closed(self):
        refusals = []

        def close(what):
            try:
                what.close()
            except RuntimeError as error:
                refusals.append(str(error))

        world = World(hook=lambda _: (close(world.trainer), close(world.device)))
        world.trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-3)
        self.assertEqual(refusals, ["this Trainer is in use"] * 2)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.bin"
            path.write_bytes(array.array("H", [i * 7 % 61 for i in range(3000)]).tobytes())
            data = stowage.Dataset(path, 64, 16)
            world.trainer.run(data, 3, lambda _: close(data))
        self.assertEqual([one for one in refusals if "Dataset" in one], ["this Dataset is in use"] * 2)
        data.close()

    def test_objects_are_of_their_kinds_and_have_no_copies(self):
        world = World()
        for use in (
            lambda: stowage.Plan("nano", 4),
            lambda: stowage.Trainer(world.model, world.device, world.plan),
            lambda: stowage.Trainer("cpu", world.model, world.plan),
            lambda: world.trainer.evaluate(12345),
            lambda: world.trainer.run("tokens.bin", 3),
            lambda: stowage.Plan(world.model, 4, device=3),
            lambda: stowage.Plan.load("nano", "{}"),
            lambda: copy.copy(world.model),
            lambda: copy.deepcopy(world.trainer),
            lambda: copy.copy(world.trainer.tensor(0)),
        ):
            with self.assertRaises(TypeError):
                use()
        with self.assertRaises(stowage.Error) as raised:
            stowage.Model("none")
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual(
            [again.name, again.message, str(again)],
            [raised.exception.name, raised.exception.message, str(raised.exception)],
        )
        stowage.Device.__new__(stowage.Device).__del__()  # of an object whose constructor never ran

    def test_gradients_end_with_their_hook(self):
        kept = []
        world = World(hook=kept.append)
        world.trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-3)
        for use in (lambda: kept[0].memory, lambda: kept[0].loss_sum, lambda: kept[0].address):
            with self.assertRaisesRegex(ValueError, "hook has returned"):
                use()
        memories, arrays = [], []
        world = World(
            hook=lambda gradients: (
                memories.append(gradients.memory),
                numpy is not None and arrays.append(numpy.asarray(gradients.memory)),
            )
        )
        own = world.trainer.tensor(0).memory
        world.trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-3)
        with self.assertRaisesRegex(ValueError, "released"):
            memories[0][0]
        self.assertTrue(math.isfinite(own[0, 0]))  # a view of the weights, which stays valid
        world.trainer.close()
        for one in arrays:
            self.assertTrue(numpy.isfinite(one).all())  # their memory still exists

    def test_ctrl_c_ends_a_run(self):
        data = "open('t.bin', 'wb').write(bytes(6000))\ndata = stowage.Dataset('t.bin', 64, 16)\n"
        for progress in ("None", "lambda now: None"):
            with tempfile.TemporaryDirectory() as folder:
                code, output, problem = run_program(
                    f"os.chdir({folder!r})\n{data}w = world()\nthreading.Timer(0.3, lambda: "
                    "os.kill(os.getpid(), signal.SIGINT)).start()\n"
                    f"try:\n    w.trainer.run(data, 10**9, {progress})\nexcept KeyboardInterrupt:\n"
                    "    print('interrupted', w.trainer.progress.step > 0)\n"
                    "w.trainer.step([[1, 2]], [[2, 3]], learning_rate=1e-3)\n"
                    "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
                )
            self.assertEqual((code, output, problem), (0, "interrupted True\nTrue\n", ""))

    def test_python_ends_while_a_thread_trains(self):
        """Python would end the thread in a callback, with the library's frames below it on the stack."""
        data = "open('t.bin', 'wb').write(bytes(6000))\ndata = stowage.Dataset('t.bin', 64, 16)\n"
        ends = {
            "a run": "w.trainer.run(data, 10**9, lambda now: started.set())",
            "a run in silence": "started.set(); w.trainer.run(data, 10**9)",
            "steps": "[w.trainer.step([[1, 2]], [[2, 3]], learning_rate=1e-3) and started.set() "
            "for _ in range(10**9)]",
            "plans": "[stowage.Plan(w.model, 4, sequence=16, memory_bytes=64 << 20, device='cpu') "
            "and started.set() for _ in range(10**9)]",
        }
        for how, end in ends.items():
            for hook in ("", "gradient_hook=lambda gradients: None"):
                with tempfile.TemporaryDirectory() as folder:
                    done = run_program(
                        f"os.chdir({folder!r})\n{data}w = world({hook})\nstarted = threading.Event()\n"
                        f"def train():\n    {end}\n"
                        "threading.Thread(target=train, daemon=True).start()\nstarted.wait()\nprint('end')\n"
                    )
                self.assertEqual(done, (0, "end\n", ""), how)

    def test_watches_report_and_cancel(self):
        done, answer = [], [None]

        def notify(now):
            if now.work == "step":
                self.assertEqual((now.unit, now.total), ("micro_steps", 2))
                done.append(now.done)
            if isinstance(answer[0], Exception):
                raise answer[0]
            return answer[0]

        watch = stowage.Watch(notify, interval_milliseconds=0)
        world = World(trainer={"watch": watch}, micro_batch=2, watch=watch)
        step = lambda: world.trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-3)
        step()
        self.assertEqual((done[0], done[-1]), (0, 2))
        self.assertEqual(world.trainer.progress.micro_steps_done, 2)
        self.assertEqual(watch.state.work, "none")
        answer[0] = True
        self.assertRaises(stowage.Cancelled, step)
        answer[0] = KeyError("of the watch")
        self.assertRaises(KeyError, step)
        answer[0] = None
        watch.cancel()
        with self.assertRaises(stowage.Cancelled):
            stowage.Plan(world.model, 4, sequence=16, watch=watch)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(world.plan.frontier(8, watch=watch), world.plan.frontier(8))
            self.assertEqual(world.plan.picture("html", watch=watch), world.plan.picture("html"))
            world.model.export(folder, watch=watch)
            self.assertEqual(watch.state.total, 4 * world.model.info.parameters)
            answer[0] = KeyError("of the watch")
            with self.assertRaises(KeyError):
                world.model.export(folder, watch=watch)
            answer[0] = None
        for call in (world.plan.frontier, world.plan.picture):
            watch.cancel()
            with self.assertRaises(stowage.Cancelled):
                call(watch=watch)
        with self.assertRaisesRegex(RuntimeError, "in use"):
            watch.close()
        self.assertEqual(step().step, 2)
        world.trainer.close()
        watch.close()
        with self.assertRaisesRegex(TypeError, "watch: expected a Watch"):
            stowage.Plan(world.model, 4, sequence=16, watch=3)
        with self.assertRaisesRegex(TypeError, "watch: expected a Watch"):
            world.plan.frontier(watch=3)
        self.assertEqual(
            run_program("watch = stowage.Watch()\nw = world(watch=watch)\nprint('ends')"), (0, "ends\n", "")
        )

    def test_zero_is_a_seed(self):
        weights = lambda **seed: World(model=stowage.Model(GPT2, **seed)).weights()
        self.assertEqual(weights(), weights(seed=1337))
        self.assertNotEqual(weights(seed=0), weights(seed=1337))

    def test_forks_leave_their_parents_trainers_alone(self):
        text = (
            "w = world()\nw.trainer.step([[1, 2]], [[2, 3]], learning_rate=1e-3)\nsys.stdout.flush()\n"
            "child = os.fork()\nif child == 0:\n    sys.exit(0)\n"
            "print(os.waitpid(child, 0)[1], w.trainer.step([[1, 2]], [[2, 3]], learning_rate=1e-3).step)"
        )
        self.assertEqual(run_program(text)[:2], (0, "0 2\n"))  # newer versions of Python warn about threads


class Numbers(unittest.TestCase):
    def test_that_c_types_cannot_hold_are_refused(self):
        world = World()
        for use in (
            lambda: world.trainer.generate([2**32 + 1], 3),
            lambda: world.trainer.logits([-(2**31) - 1]),
            lambda: stowage.Plan(world.model, 4, micro_batch=2**32 + 1),
            lambda: stowage.Plan(world.model, 4, precision=2**32 + 2),
            lambda: stowage.Plan(world.model, 4, memory_bytes=-1),
            lambda: stowage.Plan(world.model, -1),
            lambda: stowage.pack([(0, 1, 2**64 + 10)]),
            lambda: world.trainer.tensor(2**64 + 1),
            lambda: world.trainer.replan(-5),
            lambda: world.trainer.step([[2**31]], [[1]], learning_rate=1e-3),
            lambda: stowage.Model("nano\0junk"),
            lambda: world.trainer.save("a\0b"),
            lambda: world.trainer.tensor(0, "bogus"),
            lambda: stowage.Plan(world.model, 4, inputs="lengths"),
        ):
            with self.assertRaises(ValueError):
                use()
        with self.assertRaises(TypeError):
            stowage.Model(GPT2, labels="low")
        self.assertEqual(
            stowage.Plan(
                world.model,
                4,
                inputs=None,
                groups={"pattern": "norms", "frozen": True},
                state_bits="8",
                device="cpu",
                memory_bytes=1 << 28,
            ).info.state_bits,
            8,
        )
        self.assertIsInstance(world.plan.info.gradients, int)
        if numpy is not None:
            for dtype in (">i4", "i8", "?"):
                with self.assertRaises((TypeError, BufferError, stowage.Error)):
                    world.trainer.step(numpy.ones((2, 3), dtype), [[1, 2, 3]] * 2, learning_rate=1e-3)
        world.trainer.step((ctypes.c_int32 * 3 * 2)(*[(1, 2, 3)] * 2), [[1, 2, 3]] * 2, learning_rate=1e-3)


class Example(unittest.TestCase):
    def test_runs_with_a_library_next_to_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER / "stowage", pathlib.Path(folder, "stowage"))
            shutil.copy(LIBRARY, pathlib.Path(folder, "stowage/libstowage.so.0"))
            shutil.copy(FOLDER / "train.py", folder)
            text = pathlib.Path(folder, "text.txt")
            text.write_text(
                "How much wood would a woodchuck chuck if a woodchuck could chuck wood?\n" * 60,
                encoding="utf-8",
            )
            run = [sys.executable, "-B", folder + "/train.py"]
            done = subprocess.run(
                [*run, text, "nano", "5", folder], capture_output=True, text=True, check=True
            )
            losses = [
                float(line.split("loss ")[1].split()[0])
                for line in done.stdout.splitlines()
                if line.startswith("step ") and "loss" in line
            ]
            self.assertEqual(len(losses), 5)
            self.assertLess(losses[-1], losses[0])
            self.assertTrue(pathlib.Path(folder, "checkpoint.stw").exists())
            self.assertEqual(
                json.loads(pathlib.Path(folder, "config.json").read_text(encoding="utf-8"))["model_type"],
                "gpt2",
            )
            failed = subprocess.run([*run, folder + "/none"], capture_output=True, text=True, check=False)
            self.assertEqual(failed.returncode, 1)
            self.assertIn("STW_IO_ERROR", failed.stderr)


class Plans(unittest.TestCase):
    def test_have_their_options_and_figures(self):
        model = stowage.Model("nano", dropout=0)
        plan = stowage.Plan(
            model,
            12,
            sequence=64,
            device="rtx4090",
            memory_bytes=1 << 30,
            precision="bf16",
            optimizer="lion",
            state_bits=8,
            inputs=["positions"],
            groups=[
                {"pattern": "embeddings", "frozen": True},
                {"pattern": "norms", "learning_rate": 0.5, "weight_decay": 0},
            ],
        )
        details = plan.details
        self.assertEqual(
            [
                details["numerics"]["precision"],
                details["numerics"]["optimizer"],
                details["numerics"]["state_bits"],
            ],
            ["bf16", "lion", 8],
        )
        self.assertEqual(details["numerics"]["inputs"], ["positions"])
        self.assertLess(details["model"]["trainable"], model.info.parameters)
        self.assertEqual(plan.info.precision, "bf16")
        plan.verify()
        self.assertEqual(stowage.Plan.load(model, plan.json).json, plan.json)
        self.assertEqual(max(one.offset + one.bytes for one in plan.buffers if one.bytes), plan.info.arena)
        frontier = plan.frontier()
        self.assertEqual([one.peak for one in frontier], sorted(one.peak for one in frontier))
        self.assertTrue(plan.picture("svg").startswith("<svg"))
        self.assertIn("id,lower,upper,size", plan.picture("csv"))
        with self.assertRaisesRegex(ValueError, "expected svg, html or csv"):
            plan.picture("png")
        self.assertGreater(stowage.longest_sequence(model, 12, device="rtx4090", memory_bytes=1 << 30), 64)
        with self.assertRaisesRegex(stowage.Error, "STW_CORRUPT"):
            stowage.Plan.load(model, plan.json.replace('"micro_batch": ', '"micro_batch": 1'))


class Training(unittest.TestCase):
    def test_learns_and_is_saved(self):
        world = World()
        tokens, targets = tokens_of(), tokens_of(seed=5)
        losses = [world.trainer.step(tokens, targets, learning_rate=1e-2).loss for _ in range(8)]
        self.assertLess(losses[-1], losses[0] - 1)
        self.assertEqual([world.trainer.progress.step, world.trainer.progress.phase], [8, "idle"])
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = pathlib.Path(folder) / "checkpoint.stw"
            world.trainer.save(checkpoint)
            stowage.verify_checkpoint(checkpoint)
            other = World()
            other.trainer.restore(checkpoint)
            self.assertEqual(other.weights(), world.weights())
            smaller = other.trainer.replan(world.plan.info.minimum_bytes)
            self.assertEqual(smaller.info.budget, world.plan.info.minimum_bytes)
            for one in (world, other):
                one.trainer.step(tokens, targets, learning_rate=1e-2)
            self.assertEqual(other.weights(), world.weights())  # the same bits with less memory
            world.trainer.export_model(folder)
            again = stowage.Model(folder)
            self.assertEqual(again.info.has_weights, 1)
            self.assertEqual(World(again).weights(), world.weights())
            checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
            with self.assertRaisesRegex(stowage.Error, "STW_CORRUPT"):
                stowage.verify_checkpoint(checkpoint)

    def test_takes_any_array_of_numbers(self):
        tokens, targets = tokens_of(), tokens_of(seed=5)
        flat = array.array("i", (token for row in tokens for token in row))
        matrix = memoryview(flat).cast("B").cast("i", (4, 16))
        # only the first half of every row belongs to the view
        wide = array.array("i", (token for row in tokens for token in [*row, *row]))
        worlds, kinds = (
            [],
            [(tokens, targets), (matrix, targets), (memoryview(bytes(flat)).cast("i", (4, 16)), targets)],
        )
        if numpy is not None:
            strided = numpy.frombuffer(wide, dtype="i4").reshape(4, 32)[:, :16]
            backwards = numpy.ascontiguousarray(numpy.array(tokens, "i4")[::-1])[::-1]
            kinds += [
                (numpy.array(tokens, "i4"), numpy.array(targets, "i4")),
                (strided, targets),
                (backwards, targets),
            ]
        if torch is not None:
            kinds += [
                (torch.tensor(tokens, dtype=torch.int32), torch.tensor(targets, dtype=torch.int32)),
                (torch.tensor(tokens, dtype=torch.int32).T.contiguous().T, targets),
            ]
        for one in kinds:
            world = World()
            world.trainer.step(*one, learning_rate=1e-2)
            worlds.append(world.weights())
        for one in worlds[1:]:
            self.assertEqual(one, worlds[0])
        world = World()
        with self.assertRaisesRegex(ValueError, "rows of one length"):
            world.trainer.step([[1, 2], [3]], [[1, 2], [3, 4]], learning_rate=1e-2)
        with self.assertRaisesRegex(stowage.Error, "tokens: expected int32"):
            world.trainer.step(array.array("q", [1, 2]), [[1, 2]], learning_rate=1e-2)
        with self.assertRaisesRegex(stowage.Error, "outside of the vocabulary"):
            world.trainer.step([[1, 64]], [[1, 2]], learning_rate=1e-2)
        with self.assertRaises(TypeError):
            world.trainer.step("text", [[1, 2]], learning_rate=1e-2)

    def test_strides_are_whole_numbers_of_items(self):
        """A field of packed records has other strides."""
        every_third = memoryview(array.array("i", range(64)))[::3]
        self.assertEqual(_tensors._of_buffer(every_third).keeps[2][0], 3)
        if numpy:
            packed = numpy.zeros(64, dtype=[("value", "<f4"), ("flag", "u1")])
            with self.assertRaisesRegex(ValueError, "strides are whole items of 4 bytes, found \\(5,\\)"):
                _tensors._of_buffer(memoryview(packed["value"]))
        fake = types.SimpleNamespace(format="f", itemsize=4, strides=(5,), shape=(64,), ndim=1)
        with self.assertRaisesRegex(ValueError, "whole items of 4 bytes"):
            _tensors._of_buffer(fake)

    def test_lengths_weights_and_positions(self):
        world = World(inputs=["positions", "weights"])
        tokens = tokens_of(2, 8)
        result = world.trainer.step(
            tokens,
            labels=tokens,
            lengths=[8, 3],
            weights=[[1.0] * 8, [0.5] * 8],
            positions=[[0, 1, 2, 0, 1, 2, 3, 4], [*range(8)]],
            learning_rate=1e-3,
        )
        self.assertEqual(result.targets, 6 + 2)
        with self.assertRaisesRegex(stowage.Error, "STW_UNSUPPORTED"):
            World().trainer.step(tokens, tokens, weights=[[1.0] * 8] * 2, learning_rate=1e-3)

    def test_runs_over_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.bin"
            path.write_bytes(array.array("H", [i * 7 % 61 for i in range(3000)]).tobytes())
            with stowage.Dataset(path, 64, 16) as data:
                self.assertEqual([data.info.training_tokens, data.info.evaluation_tokens], [2700, 300])
                world = World()
                before, seen = world.trainer.evaluate(data, 2), []
                self.assertTrue(
                    world.trainer.run(
                        data,
                        30,
                        seen.append,
                        learning_rate=1e-2,
                        schedule="linear",
                        min_rate=0,
                        progress_every=10,
                    )
                )
                self.assertEqual([now.step for now in seen], [10, 20, 30])
                self.assertTrue(World().trainer.run(data, 25, seen.append, progress_every=10))
                self.assertEqual([now.step for now in seen[3:]], [10, 20, 25])
                self.assertLess(world.trainer.evaluate(data, 2), before - 1)
                self.assertEqual(world.trainer.progress.evaluation_loss, world.trainer.evaluate(data, 2))
                self.assertFalse(world.trainer.run(data, 60, lambda now: now.step == 33))
                self.assertEqual(world.trainer.progress.batches, 33)

                def fail(now):
                    raise KeyError(now.step)

                with self.assertRaisesRegex(KeyError, "34"):
                    world.trainer.run(data, 60, fail)
                # From another thread.
                started = threading.Event()
                canceller = threading.Thread(target=lambda: (started.wait(), world.trainer.cancel()))
                canceller.start()
                self.assertFalse(world.trainer.run(data, 10**9, lambda _: started.set()))
                canceller.join()
                world.trainer.cancel()
                with self.assertRaises(stowage.Cancelled):
                    world.trainer.evaluate(data)

    def test_prefers_the_chosen_answers(self):
        world = World(preference="dpo", trainer={"beta": 0.5})
        tokens = tokens_of()
        # two documents of 8 tokens in each sample
        targets = [[tokens[s][i + 1] if i % 8 not in (0, 7) else -100 for i in range(16)] for s in range(4)]
        pairs = {"tokens": tokens, "targets": targets, "positions": [[i % 8 for i in range(16)]] * 4}
        reference = world.trainer.log_probabilities(**pairs)
        self.assertEqual([len(row) for row in reference], [16] * 4)
        for row, of in zip(reference, targets):
            self.assertEqual([value < 0 for value in row], [target >= 0 for target in of])
        self.assertEqual(
            world.trainer.log_probabilities(
                *(rows[:1] for rows in (tokens, targets)), positions=[[i % 8 for i in range(16)]]
            ),
            reference[:1],
        )
        first = world.trainer.step(**pairs, reference=reference, learning_rate=1e-2)
        self.assertAlmostEqual(first.loss, math.log(2), delta=1e-5)
        self.assertEqual([first.targets, first.accuracy], [4, 0])
        for _ in range(20):
            last = world.trainer.step(**pairs, reference=reference, learning_rate=1e-2)
        self.assertLess(last.loss, 0.6)
        self.assertEqual([last.accuracy, world.trainer.progress.accuracy], [1, 1])
        with self.assertRaisesRegex(stowage.Error, "reference: it is missing"):
            world.trainer.step(**pairs, learning_rate=1e-2)
        with self.assertRaisesRegex(stowage.Error, "STW_UNSUPPORTED"):
            World().trainer.step(tokens, tokens, reference=reference, learning_rate=1e-2)
        for use in (
            lambda: world.trainer.log_probabilities([1, 2, 3], [2, 3, 4]),
            lambda: world.trainer.log_probabilities(None, targets),
            lambda: World(preference="dpo", trainer={"margin": 0}),
            lambda: World(trainer={"beta": 0.1}),
        ):
            with self.assertRaisesRegex(stowage.Error, "STW_BAD_ARGUMENT"):
                use()
        World(preference="simpo", trainer={"margin": 0, "answer_share": 1, "label_smoothing": 0.1})
        with self.assertRaisesRegex(
            ValueError, 'preference "ppo": expected one of none, dpo, ipo, simpo, orpo'
        ):
            World(preference="ppo")

    def test_writes_references(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens, marks, reference = (
                pathlib.Path(folder, name) for name in ("tokens.bin", "marks", "reference")
            )
            tokens.write_bytes(array.array("H", [i * i // 7 % 61 for i in range(640)]).tobytes())
            # documents, alternately chosen and rejected
            marks.write_bytes(bytes([_abi.STW_MARK_BEGIN, 0, 0, 0, 0] + [_abi.STW_MARK_TARGET] * 3) * 80)
            world = World(preference="dpo")
            with stowage.Dataset(tokens, 64, 16, marks=marks, pairs=True) as bare:
                with self.assertRaisesRegex(stowage.Error, "against a reference"):
                    world.trainer.run(bare, 1)
                world.trainer.write_reference(bare, reference)
                with self.assertRaisesRegex(stowage.Error, "STW_BAD_STATE"):
                    World().trainer.write_reference(bare, reference)
            self.assertEqual(reference.stat().st_size, 640 * 4 + 32)
            written = array.array("f", reference.read_bytes()[: 640 * 4])
            self.assertEqual([value < 0 for value in written], [i % 8 > 4 for i in range(640)])
            with stowage.Dataset(tokens, 64, 16, marks=marks, pairs=True, reference=reference) as data:
                self.assertAlmostEqual(world.trainer.evaluate(data, 100), math.log(2), delta=1e-5)
                self.assertTrue(world.trainer.run(data, 3, learning_rate=1e-2))
            with self.assertRaises(TypeError):
                world.trainer.write_reference(tokens, reference)

    def test_gradients_may_be_changed(self):
        seen = []

        def hook(gradients):
            seen.append((gradients.count, gradients.loss_sum, gradients.target_count, gradients.scale))
            memory = gradients.memory
            for i in range(len(memory)):
                memory[i] = 0.0

        world = World(hook=hook, trainer={"weight_decay": 0})
        before = world.weights()
        result = world.trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-2)
        self.assertEqual(result.grad_norm, 0)
        self.assertEqual(world.weights(), before)
        self.assertEqual(seen[0][2:], (64, 1.0))
        self.assertAlmostEqual(seen[0][1] / 64, result.loss)

        def fail(_):
            raise RuntimeError("no network")

        world = World(hook=fail)
        before = world.weights()
        with self.assertRaisesRegex(RuntimeError, "no network"):
            world.trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-2)
        self.assertEqual(world.weights(), before)

    def test_generates(self):
        world = World()
        for _ in range(40):
            world.trainer.step([[1, 2, 3, 4, 5, 6]] * 4, [[2, 3, 4, 5, 6, 7]] * 4, learning_rate=1e-2)
        self.assertEqual(world.trainer.generate([1, 2], 4), [3, 4, 5, 6])
        self.assertEqual(world.trainer.generate([1, 2], 4, stop=[5]), [3, 4, 5])
        self.assertEqual(len(world.trainer.generate([1], 5, temperature=2.0, top_k=3, seed=9)), 5)
        self.assertEqual(world.trainer.generate([1, 2], 4, temperature=2.0, top_p=1e-9), [3, 4, 5, 6])
        logits = world.trainer.logits([1, 2])
        self.assertEqual([len(logits), logits.index(max(logits))], [64, 3])

    def test_calibrates(self):
        world = World()
        profile = world.trainer.calibrate()
        self.assertEqual(json.loads(profile)["format"], "stowage-profile")
        about = stowage.profile_info(profile)
        self.assertEqual([about.precision, about.threads], ["fp32", 2])
        self.assertIn("linear", [op.name for op in about.ops])
        plan = stowage.Plan(world.model, 4, sequence=16, memory_bytes=64 << 20, profile=profile, threads=2)
        self.assertIn("calibration", plan.details["device"])
        with tempfile.TemporaryDirectory() as folder:
            world.trainer.timeline(folder + "/step.json")
            self.assertIn(
                "traceEvents", json.loads(pathlib.Path(folder, "step.json").read_text(encoding="utf-8"))
            )

    def test_classifies(self):
        model = stowage.Model(GPT2, labels=["low", "high"])
        self.assertEqual([model.labels, model.info.labels], [["low", "high"], 2])
        self.assertEqual(model.config["id2label"], {"0": "low", "1": "high"})
        self.assertEqual(stowage.Model(GPT2).config, GPT2)
        self.assertEqual(stowage.Model(GPT2, labels=3).labels, ["LABEL_0", "LABEL_1", "LABEL_2"])
        world = World(model)
        texts = [[1, 2, 3, 0], [40, 50, 60, 0], [4, 5, 6, 7], [33, 44, 0, 0]]
        for _ in range(30):
            world.trainer.step(texts, labels=[0, 1, 0, 1], lengths=[3, 3, 4, 2], learning_rate=1e-2)
        self.assertGreater(*world.trainer.logits([1, 2, 3]))
        self.assertLess(*world.trainer.logits([33, 44]))
        prompts = [[1, 2, 3], [33, 44]]
        self.assertEqual(world.trainer.classify(prompts), [world.trainer.logits(text) for text in prompts])
        self.assertEqual(world.trainer.classify(iter([(1, 2, 3)])), [world.trainer.logits([1, 2, 3])])
        self.assertEqual(world.trainer.classify([]), [])
        for use, expected in (
            (lambda: world.trainer.classify(prompts, prompts), "STW_BAD_ARGUMENT: .* no types of tokens"),
            (lambda: world.trainer.classify([[]]), "STW_UNSUPPORTED_SHAPE"),
            (lambda: World().trainer.classify(prompts), "STW_UNSUPPORTED: .* no classifier"),
        ):
            with self.assertRaisesRegex(stowage.Error, expected):
                use()

    def test_labels_tokens(self):
        model = stowage.Model(GPT2, labels=["O", "B", "I"], task="token_label")
        self.assertEqual([model.info.task, stowage.Model(GPT2).info.task], ["token_label", "language_model"])
        world = World(model)
        tokens = tokens_of()
        done = world.trainer.step(
            tokens, labels=[[-100, *(token % 3 for token in row[1:])] for row in tokens], learning_rate=1e-3
        )
        self.assertEqual(done.targets, 60)
        texts = [[1, 2, 3], [4]]
        logits = world.trainer.classify(texts)
        self.assertEqual([[len(row) for row in text] for text in logits], [[3, 3, 3], [3]])
        self.assertEqual([world.trainer.classify([text])[0] for text in texts], logits)
        self.assertEqual(world.trainer.classify([]), [])
        with self.assertRaisesRegex(stowage.Error, "STW_UNSUPPORTED: logits"):
            world.trainer.logits([1, 2])
        with self.assertRaisesRegex(ValueError, 'task "words": expected one of automatic, '):
            stowage.Model(GPT2, labels=3, task="words")

    def test_learns_several_labels_and_numbers(self):
        for task, values in (
            ("labels", [[0, 1], [1, 1], [0.5, 0], [float("nan")] * 2]),
            ("number", [[2.5, -1], [0, 0], [3, 4], [float("nan")] * 2]),
        ):
            model = stowage.Model(GPT2, labels=2, task=task)
            self.assertEqual([model.info.task, model.info.labels], [task, 2])
            world = World(model)
            self.assertEqual(world.trainer.step(tokens_of(), labels=values, learning_rate=1e-3).targets, 3)
            self.assertEqual(len(world.trainer.classify([[1, 2, 3]])[0]), 2)
            with self.assertRaisesRegex(
                stowage.Error, f"STW_BAD_ARGUMENT: batch: targets: the model's task is {task}"
            ):
                world.trainer.step(tokens_of(), tokens_of(), learning_rate=1e-3)
            with self.assertRaisesRegex(
                stowage.Error, f"STW_UNSUPPORTED: log-probabilities: the model's task is {task}"
            ):
                world.trainer.log_probabilities(tokens_of(), labels=values)

    def test_distinguishes_types_of_tokens(self):
        world = World(stowage.Model(BERT))
        self.assertEqual([world.model.info.generates, world.model.info.token_types], [0, 2])
        texts, types = [[1, 2, 3], [4, 5]], [[0, 1, 1], [0, 0]]
        without, with_types = world.trainer.classify(texts), world.trainer.classify(texts, types)
        self.assertNotEqual(with_types[0], without[0])
        self.assertEqual(with_types[1], without[1])
        self.assertEqual([*map(len, without)], [3, 3])
        with self.assertRaisesRegex(ValueError, "token_types: expected 2 lists, found 1"):
            world.trainer.classify(texts, [[0, 1, 1]])
        with self.assertRaisesRegex(ValueError, "token_types: text 1: expected 2 numbers, found 1"):
            world.trainer.classify(texts, [[0, 1, 1], [0]])
        with self.assertRaisesRegex(stowage.Error, "STW_BAD_ARGUMENT: classify: text 0: token type 2"):
            world.trainer.classify(texts, [[0, 1, 2], [0, 0]])
        given = {"tokens": tokens_of(), "labels": [0, 1, 2, 1]}
        self.assertNotEqual(
            world.trainer.log_probabilities(**given, token_types=[[1] * 16] * 4),
            world.trainer.log_probabilities(**given),
        )
        self.assertEqual(
            world.trainer.step(**given, token_types=[[0] * 8 + [1] * 8] * 4, learning_rate=1e-3).targets, 4
        )
        with self.assertRaisesRegex(stowage.Error, "STW_UNSUPPORTED: batch: token_types"):
            World().trainer.step(
                tokens_of(), labels=tokens_of(), token_types=[[0] * 16] * 4, learning_rate=1e-3
            )

    def test_learns_hidden_tokens(self):
        model = stowage.Model(BERT | {"architectures": ["BertForMaskedLM"]})
        self.assertEqual(
            [model.info.task, model.info.head_is_new, model.info.labels], ["masked_language_model", 0, 0]
        )
        body = BERT | {"architectures": ["BertModel"]}
        self.assertEqual(
            [stowage.Model(body).info.task, stowage.Model(body, task="masked_language_model").info.task],
            ["language_model", "masked_language_model"],
        )
        world, vocabulary = World(model), model.info.vocabulary
        # As in transformers: a label belongs to the token at its own position, without a shift.
        tokens = [[3 if i % 5 == 2 else 4 + (s + i) % (vocabulary - 4) for i in range(16)] for s in range(4)]
        labels = [
            [4 + (s + i) % (vocabulary - 4) if i % 5 == 2 else -100 for i in range(16)] for s in range(4)
        ]
        probabilities = world.trainer.log_probabilities(tokens, labels=labels)
        self.assertEqual(probabilities, world.trainer.log_probabilities(tokens, targets=labels))
        self.assertEqual(
            [[value < 0 for value in row] for row in probabilities],
            [[label >= 0 for label in row] for row in labels],
        )
        self.assertEqual(world.trainer.step(tokens, labels=labels, learning_rate=1e-3).targets, 12)
        with tempfile.TemporaryDirectory() as folder:
            path, marks = pathlib.Path(folder, "tokens.bin"), pathlib.Path(folder, "marks")
            path.write_bytes(
                array.array(
                    "H", [1 if i % 8 == 0 else 4 + i * i // 7 % (vocabulary - 4) for i in range(640)]
                ).tobytes()
            )
            marks.write_bytes(bytes([_abi.STW_MARK_BEGIN] + [_abi.STW_MARK_TARGET] * 7) * 80)
            kinds = bytes([_abi.STW_TOKEN_SPECIAL] * 4 + [0] * (vocabulary - 4))
            hidden = {"mask_rate": 0.3, "mask_token": 3, "token_kinds": kinds}
            with stowage.Dataset(path, vocabulary, 16, marks=marks, **hidden) as data:
                before = world.trainer.evaluate(data, 5)
                self.assertEqual(world.trainer.evaluate(data, 5), before)
                self.assertTrue(world.trainer.run(data, 40, learning_rate=1e-2))
                self.assertLess(world.trainer.evaluate(data, 5), before)
                self.assertGreater(world.trainer.progress.evaluation_accuracy, 0)
                with self.assertRaisesRegex(stowage.Error, "hides tokens"):
                    World(inputs="positions").trainer.evaluate(data, 1)
            with self.assertRaisesRegex(ValueError, "token_kinds: expected"):
                stowage.Dataset(path, vocabulary, 16, **hidden | {"token_kinds": kinds[1:]})
            for wrong, expected in (
                ({"mask_rate": 1.5}, "mask rate: expected"),
                ({"mask_rate": 0}, "are for a mask_rate"),
                ({"mask_token": vocabulary}, "mask token: expected"),
                ({"token_kinds": b"\4" * vocabulary}, "expected at most 3"),
                ({"token_kinds": None, "mask_whole_words": 1}, "whole words: expected token kinds"),
            ):
                with self.assertRaisesRegex(stowage.Error, "STW_BAD_ARGUMENT: .*" + expected):
                    stowage.Dataset(path, vocabulary, 16, marks=marks, **hidden | wrong)
        for use in (
            lambda: world.trainer.logits([1, 2]),
            lambda: world.trainer.classify([[1, 2]]),
            lambda: world.trainer.generate([1, 2], 3),
        ):
            with self.assertRaisesRegex(stowage.Error, "STW_UNSUPPORTED"):
                use()

    def test_tunes_an_encoder_whole_and_with_adapters(self):
        texts, labels = (
            [[1, 2, 3, 0], [40, 50, 60, 0], [4, 5, 6, 7], [33, 44, 0, 0]],
            {"labels": [0, 1, 0, 2], "lengths": [3, 3, 4, 2]},
        )
        prompts = [text[:length] for text, length in zip(texts, labels["lengths"])]
        world = World(stowage.Model(BERT))
        for _ in range(40):
            world.trainer.step(texts, **labels, learning_rate=3e-3)
        answers = world.trainer.classify(prompts)
        self.assertEqual([max(range(3), key=logits.__getitem__) for logits in answers], labels["labels"])
        with tempfile.TemporaryDirectory() as folder:
            world.trainer.export_model(folder + "/base")
            self.assertEqual(World(stowage.Model(folder + "/base")).trainer.classify(prompts), answers)
            adapted = World(stowage.Model(folder + "/base", adapter_rank=2, adapter_targets="query,value"))
            adapted.trainer.step(texts, **labels, learning_rate=1e-2)
            adapted.trainer.export_model(folder + "/adapters")
            self.assertNotEqual(adapted.trainer.classify(prompts), answers)
            self.assertEqual(
                World(stowage.Model(folder + "/adapters")).trainer.classify(prompts),
                adapted.trainer.classify(prompts),
            )

    def test_messages_of_a_device(self):
        messages = []
        with stowage.Device("cpu", log=lambda *message: messages.append(message), log_level=2) as device:
            model = stowage.Model(GPT2)
            plan = stowage.Plan(model, 4, device=device, sequence=16, memory_bytes=64 << 20)
            trainer = stowage.Trainer(device, model, plan)
            trainer.step([[1, 2]], [[-100, -100]], learning_rate=1e-3)
            self.assertEqual([one.text for one in device.logged()], [message for _, _, message in messages])
            self.assertIn("no target has a loss", messages[0][2])
            self.assertEqual(device.holders, [])


class Tensors(unittest.TestCase):
    def test_views_are_the_trainers_own_memory(self):
        world = World()
        name = "transformer.h.0.mlp.c_fc.bias"
        view = world.trainer.tensor(name)
        self.assertEqual([view.shape, view.dtype, view.device], [(128,), "float32", (1, 0)])
        world.trainer.set_tensor(name, [i / 8 for i in range(128)])
        self.assertEqual(list(view.memory), [i / 8 for i in range(128)])
        view.memory[3] = -5.0
        again = world.trainer.tensor(world.model.index_of(name))
        self.assertEqual(again.memory[3], -5.0)
        matrix = world.trainer.tensor("transformer.h.1.attn.c_proj.weight", "first_moment")
        self.assertEqual(matrix.memory.shape, (32, 32))
        with self.assertRaises(KeyError):
            world.trainer.tensor("no.such.tensor")
        with self.assertRaisesRegex(stowage.Error, "STW_BAD_ARGUMENT"):
            world.trainer.set_tensor(name, [1.0])

    def test_views_go_through_dlpack(self):
        world = World()
        view = world.trainer.tensor("transformer.wpe.weight")
        # read by DLPack, as other libraries' tensors are
        world.trainer.set_tensor("transformer.wpe.weight", view)
        _tensors.drop_unclaimed()
        self.assertFalse(_tensors._exports)
        capsule = view.__dlpack__(max_version=(1, 1))
        _tensors.drop_unclaimed()
        self.assertEqual(len(_tensors._exports), 1)
        del capsule
        _tensors.drop_unclaimed()
        self.assertFalse(_tensors._exports)
        with self.assertRaises(BufferError):
            view.__dlpack__(max_version=(1, 0), dl_device=(2, 0))
        with self.assertRaises(BufferError):
            view.__dlpack__()
        bf16 = World(precision="bf16").trainer.tensor("transformer.wpe.weight")
        self.assertEqual([bf16.dtype, bf16.memory.format, bf16.memory.shape], ["bfloat16", "H", (16, 32)])
        self.assertFalse(hasattr(bf16, "__array_interface__"))

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy(self):
        world = World()
        view = world.trainer.tensor("transformer.wpe.weight")
        for taken in (numpy.asarray(view), numpy.from_dlpack(view)):
            self.assertEqual([taken.shape, taken.dtype.name], [(16, 32), "float32"])
            self.assertTrue(math.isclose(taken[3, 5], view.memory[3, 5]))
        numpy.asarray(view)[:] = 2
        self.assertEqual(view.memory[15, 31], 2)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_torch_brings_memory(self):
        arenas = []
        device, model = (
            stowage.Device(
                "cpu",
                threads=2,
                memory=lambda count: arenas.append(torch.zeros(count, dtype=torch.uint8)) or arenas[-1],
            ),
            stowage.Model(GPT2),
        )
        trainer = stowage.Trainer(
            device, model, stowage.Plan(model, 4, device=device, sequence=16, memory_bytes=64 << 20)
        )
        trainer.step(tokens_of(), tokens_of(seed=5), learning_rate=1e-3)
        self.assertEqual(len(arenas), 1)
        self.assertTrue(arenas[0].any())

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_torch(self):
        world = World(precision="bf16")
        view = world.trainer.tensor("transformer.wpe.weight")
        taken = torch.from_dlpack(view)
        self.assertEqual([taken.shape, taken.dtype], [(16, 32), torch.bfloat16])
        taken.fill_(1)
        self.assertEqual(bytes(view.memory), b"\x80\x3f" * 512)
        del view, taken
        gc.collect()
        self.assertFalse(_tensors._exports)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_torch_may_hold_one_to_the_end(self):
        self.assertEqual(
            run_program(
                "import torch\nx = torch.from_dlpack(world().trainer.tensor(0))\nx.me = x\nprint('end')"
            ),
            (0, "end\n", ""),
        )

    def test_arrays_keep_the_memory_of_a_closed_trainer(self):
        """The memory is allocated by Python here, so its release can be observed."""
        takes = [
            lambda view: ctypes.c_float.from_buffer(view.memory),
            lambda view: view.__dlpack__(max_version=(1, 0)),
        ]
        if numpy is not None:
            takes += [
                numpy.asarray,
                numpy.from_dlpack,
                lambda view: numpy.asarray(view.memory),
                lambda view: numpy.asarray(view)[3:],
            ]
        if torch is not None:
            takes += [torch.from_dlpack]
        ends = {
            "closed": lambda trainer, device: trainer.close(),
            "forgotten": lambda trainer, device: None,
            "with its device": lambda trainer, device: device.close(),
        }
        for how, end in ends.items():
            for take in takes:
                given = []

                def memory(count):
                    block = (ctypes.c_uint8 * count)()
                    given.append(weakref.ref(block))
                    return block

                device, model = stowage.Device("cpu", threads=2, memory=memory), stowage.Model(GPT2)
                plan = stowage.Plan(
                    model, 4, device=device, sequence=16, memory_bytes=64 << 20, state_bits=32
                )
                trainer = stowage.Trainer(device, model, plan)
                taken = take(trainer.tensor(0))
                with self.assertRaisesRegex(BufferError, "1 arrays or tensors made of this trainer's views"):
                    trainer.replan(plan.info.minimum_bytes)
                end(trainer, device)
                del trainer, device
                gc.collect()
                self.assertIsNotNone(given[0](), how)
                if numpy is not None and isinstance(taken, numpy.ndarray):
                    self.assertTrue(numpy.isfinite(taken).all())
                    taken[:] = 3
                del taken
                _tensors.drop_unclaimed()
                self.assertIsNone(given[0](), how)

    def test_released_views_do_not_prevent_planning_again(self):
        world = World()
        view = world.trainer.tensor(0)
        memory = view.memory
        if numpy is not None:
            numpy.asarray(view)[:] = 2
            loop = [numpy.asarray(view)]  # and one in a reference cycle
            loop.append(loop)
            del loop
        world.trainer.replan(world.plan.info.minimum_bytes)
        with self.assertRaisesRegex(ValueError, "released"):
            memory[0, 0]
        self.assertEqual(world.trainer.tensor(0).memory.shape, (64, 32))

    def test_views_end_with_their_memory(self):
        world = World()
        view = world.trainer.tensor(0)
        memory = view.memory
        world.trainer.replan(32 << 20)
        del memory
        for use in (
            lambda: view.memory,
            lambda: view.__dlpack__(max_version=(1, 0)),
            lambda: view.__array_interface__,
        ):
            with self.assertRaisesRegex(ValueError, "closed or planned again"):
                use()
        again = world.trainer.tensor(0)
        self.assertEqual(again.memory.shape, (64, 32))
        world.trainer.close()
        with self.assertRaisesRegex(ValueError, "closed or planned again"):
            again.memory


if __name__ == "__main__":
    stowage.load(LIBRARY)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
