using System;
using System.Collections.Generic;
using System.Linq;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>A buffer that is alive in [Lower, Upper), in any unit of time.</summary>
    public struct Lifetime
    {
        /// <summary>Upper == lower takes no space.</summary>
        public Lifetime(long lower, long upper, long size)
        {
            Lower = lower;
            Upper = upper;
            Size = size;
        }

        /// <summary>From here on.</summary>
        public long Lower { get; }
        /// <summary>Up to here, not included.</summary>
        public long Upper { get; }
        /// <summary>Bytes.</summary>
        public long Size { get; }
    }

    /// <summary>Offsets for any buffers that share memory, not only those of a plan: what was found, and how good it is.</summary>
    public sealed unsafe class Packing
    {
        private Packing(IReadOnlyList<long> offsets, stw_pack_result told)
        {
            Offsets = offsets;
            Answer = (PackAnswer)told.answer;
            Height = Numbers.Of(told.height);
            Bound = Numbers.Of(told.bound);
            Nodes = Numbers.Of(told.nodes);
        }

        /// <summary>null where no placement within the capacity was found.</summary>
        public IReadOnlyList<long> Offsets { get; }
        /// <summary>How good they are.</summary>
        public PackAnswer Answer { get; }
        /// <summary>Largest offset + size of the lowest placement found, within the capacity or not.</summary>
        public long Height { get; }
        /// <summary>Proven: no placement is lower.</summary>
        public long Bound { get; }
        /// <summary>Decisions taken.</summary>
        public long Nodes { get; }

        /// <summary>Gives buffers offsets so that those alive at the same time do not overlap, within a capacity (0: as low as possible), by so many decisions (0: 1,000,000).</summary>
        /// <exception cref="StowageException">BadArgument for an upper below its lower, and where 2^62 bytes or more are needed</exception>
        public static Packing Find(IReadOnlyList<Lifetime> lifetimes, long capacity = 0, long nodeLimit = 0)
        {
            var given = Numbers.Given(lifetimes, nameof(lifetimes))
                .Select(one => new stw_buffer_lifetime { lower = one.Lower, upper = one.Upper, size = Numbers.Unsigned(one.Size, nameof(one.Size)) }).ToArray();
            var offsets = new ulong[given.Length];
            stw_pack_options options = stw_pack_options.Sized();
            options.capacity = Numbers.Unsigned(capacity, nameof(capacity));
            options.node_limit = Numbers.Unsigned(nodeLimit, nameof(nodeLimit));
            stw_pack_result told = stw_pack_result.Sized();
            stw_error error = stw_error.Sized();
            int status;
            fixed (stw_buffer_lifetime* buffers = given)
            fixed (ulong* to = offsets)
                status = stw_pack(to, buffers, (UIntPtr)given.Length, &options, &told, &error);
            if (status == STW_OVER_BUDGET)
                return new Packing(null, told);
            Errors.Check(status, &error);
            return new Packing(Array.ConvertAll(offsets, Numbers.Of), told);
        }
    }
}
