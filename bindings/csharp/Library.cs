using System;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The library that is loaded.</summary>
    /// <remarks>
    /// stowage.h is the contract: what every entry guarantees, and what the fields of options and results mean, which have their names here. What is not
    /// said in options means the default; what may be zero itself is null then. Failures are <see cref="StowageException"/>; what callbacks throw goes on from
    /// the call that they belong to. What is made here is disposed of in any order: nothing happens when it is once more, what is under way goes on to its
    /// end, and whatever is done with it afterwards throws ObjectDisposedException. What is forgotten ends some time. Models and plans may be used by several
    /// threads at once; datasets, trainers and a device on which a trainer is made by one at a time, another one is refused (<see cref="Status.BadState"/>).
    /// </remarks>
    public static unsafe class Library
    {
        /// <summary>Its version.</summary>
        public static Version Version
        {
            get
            {
                uint number = stw_version();
                return new Version((int)(number / 10000), (int)(number / 100 % 100), (int)(number % 100));
            }
        }

        /// <summary>The version of the header that this was made of. Older and newer libraries do, as stowage.h says.</summary>
        public static Version HeaderVersion
        {
            get { return new Version((int)STW_VERSION_MAJOR, (int)STW_VERSION_MINOR, (int)STW_VERSION_PATCH); }
        }

        /// <summary>What it was built with, and what it finds of that here.</summary>
        public static string BuildInfo
        {
            get { return Texts.Read(stw_build_info()); }
        }
    }

    /// <summary>Files of <see cref="Trainer.Save"/>.</summary>
    public static unsafe class Checkpoint
    {
        /// <summary>Reads one once and compares every checksum.</summary>
        /// <exception cref="StowageException">IOError, Corrupt naming what is damaged, Unsupported (a version of the future)</exception>
        public static void Verify(string path)
        {
            stw_error error = stw_error.Sized();
            using (var texts = new Texts())
                Errors.Check(stw_checkpoint_verify(texts.Of(path), &error), &error);
        }
    }
}
