using System;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The loaded library.</summary>
    /// <remarks>stowage.h is the contract. It says what every entry guarantees, and what the fields of
    /// options and results mean. The fields have the same names here. Unset options mean the default; options
    /// in which 0 is also a useful value are nullable. Failures are <see cref="StowageException"/>. If a
    /// callback throws, the call that ran it throws the same exception. Objects may be disposed of in any
    /// order. Disposing again does nothing, a call in progress continues to its end, and a later use throws
    /// ObjectDisposedException. The garbage collector ends a forgotten object at some time. Several threads
    /// may use models and plans at once. One thread at a time may use a dataset or a trainer, or create a
    /// trainer on a device; another one is refused (<see cref="Status.BadState"/>).</remarks>
    public static unsafe class Library
    {
        /// <summary>The version of the library.</summary>
        public static Version Version
        {
            get
            {
                uint number = stw_version();
                return new Version((int)(number / 10000), (int)(number / 100 % 100), (int)(number % 100));
            }
        }

        /// <summary>The version of the header that this assembly was made from. Older and newer libraries
        /// work, too, as stowage.h says.</summary>
        public static Version HeaderVersion
        {
            get
            {
                return new Version((int)STW_VERSION_MAJOR, (int)STW_VERSION_MINOR, (int)STW_VERSION_PATCH);
            }
        }

        /// <summary>How the library was built, and which parts of CUDA it finds on this machine.</summary>
        public static string BuildInfo
        {
            get { return Texts.Read(stw_build_info()); }
        }
    }

    /// <summary>Checkpoints: files of <see cref="Trainer.Save"/>.</summary>
    public static unsafe class Checkpoint
    {
        /// <summary>Reads a checkpoint once and compares every checksum.</summary>
        /// <exception cref="StowageException">IOError, Corrupt (it names the damaged part), Unsupported (a
        /// later version)</exception>
        public static void Verify(string path)
        {
            stw_error error = stw_error.Sized();
            using (var texts = new Texts())
                Errors.Check(stw_checkpoint_verify(texts.Of(path), &error), &error);
        }
    }
}
