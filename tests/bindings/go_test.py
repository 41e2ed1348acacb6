"""bindings/go against the library, by go test, whose cases are in go/stowage_test.go: go_test.py SOURCE_ROOT BUILD_FOLDER LIBRARY"""
import sys

from compiled import Binding

go = Binding("go", sys.argv[1:])
go.names_all(sorted(go.folder.glob("*.[gch]*")),
             but={"STW_VERSION_MAJOR", "STW_VERSION_MINOR", "STW_VERSION_PATCH", "STW_MARK_TARGET", "STW_MARK_BEGIN",
                  "STW_STATES_AUTO", "STW_STATES_32", "STW_STATES_8",   # as numbers
                  "stream", "allocate", "release", "memory_user", "run", "run_user", "arena", "arena_bytes"})   # the host's memory and threads
tests = go.root / "tests/bindings/go"
train = [str(go.build / "text.txt"), "nano", "3", str(go.build)]
go.finish("go", {"CGO_CFLAGS": f"-I{go.root / 'include'}", "CGO_LDFLAGS": f"-L{go.library.parent}", "GOCACHE": str(go.build / "go-cache"),
                 "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOWORK": "off", "GODEBUG": "cgocheck=1"},
          [(go.folder, ["go", "vet", "./..."]), (tests, ["go", "test", "-v", "-count=1", "./..."]), (go.folder, ["go", "run", "./example/train", *train])])
