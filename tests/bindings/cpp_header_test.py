"""bindings/cpp calls every entry of the header: cpp_header_test.py SOURCE_ROOT BUILD_FOLDER LIBRARY"""

import sys

from compiled import Binding

cpp = Binding("cpp", sys.argv[1:])
# stowage.hpp asks for whole lists, without their counts
cpp.names_all(
    [cpp.folder / "stowage.hpp"],
    but={
        "stw_model_tensor_count",
        "stw_plan_buffer_count",
        # replaced by the variants with a watch
        "stw_model_export",
        "stw_plan_frontier",
        "stw_plan_picture",
    },
    entries_alone=True,
)
cpp.end_if_failed()
