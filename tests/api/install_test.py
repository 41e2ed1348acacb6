"""Installs the build into a folder of its own and builds the examples in C and C++ against it as a stranger would, through
pkg-config: install_test.py MESON BUILD CC CXX PKG_CONFIG SOURCE CXX_SOURCE"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import example_test


def main():
    meson, build, cc, cxx, pkg_config, source, cxx_source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as root:
        # --no-rebuild: this runs inside of the build's own test run.
        subprocess.run([*shlex.split(meson), 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', root],
                       check=True, stdout=subprocess.DEVNULL)
        found = [folder for folder, _, files in os.walk(root) if 'stowage.pc' in files]
        assert len(found) == 1, f'stowage.pc in {found}'
        environment = dict(os.environ, PKG_CONFIG_LIBDIR=found[0], PKG_CONFIG_SYSROOT_DIR=root,
                           PKG_CONFIG_ALLOW_SYSTEM_CFLAGS='1', PKG_CONFIG_ALLOW_SYSTEM_LIBS='1')
        flags = subprocess.run([pkg_config, '--cflags', '--libs', 'stowage'], check=True, capture_output=True,
                               text=True, env=environment).stdout.split()
        include = next(flag[2:] for flag in flags if flag.startswith('-I' + root))
        programs = [os.path.join(root, 'train'), os.path.join(root, 'train_cpp')]
        strict = ['-Wall', '-Wextra', '-pedantic', '-Werror']
        subprocess.run([*shlex.split(cc), '-std=c99', *strict, source, '-o', programs[0], *flags], check=True)
        # The installed header alone, not the one beside the source.
        alone = shutil.copy(cxx_source, root)
        subprocess.run([*shlex.split(cxx), '-std=c++20', *strict, alone, '-o', programs[1], *flags], check=True)
        libraries = [flag[2:] for flag in flags if flag.startswith('-L')]
        assert libraries and {'libstowage.so.0', 'libstowage.a'} & set(os.listdir(libraries[0])), libraries
        command = os.path.join(os.path.dirname(include), 'bin', 'stowage')
        if os.path.exists(command) and not include.endswith('/usr/include'):   # -Dtools=false; a distribution's
            subprocess.run([command, '--version'], check=True, stdout=subprocess.DEVNULL, env={})
        for program in programs:
            example_test.check(program, dict(os.environ, LD_LIBRARY_PATH=':'.join(libraries)))


main()
