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

        /// <summary>The beginning of the time.</summary>
        public long Lower { get; }
        /// <summary>The end of the time, not included.</summary>
        public long Upper { get; }
        /// <summary>Bytes.</summary>
        public long Size { get; }
    }

    /// <summary>A part of a buffer's lifetime, [Lower, Upper), in which it needs only its bytes [First, End),
    /// or no bytes if both are equal.</summary>
    public struct BufferGap
    {
        /// <summary>In [lower, upper) only the bytes [first, end).</summary>
        public BufferGap(long lower, long upper, long first = 0, long end = 0)
        {
            Lower = lower;
            Upper = upper;
            First = first;
            End = end;
        }

        /// <summary>The beginning of the time.</summary>
        public long Lower { get; }
        /// <summary>The end of the time, not included.</summary>
        public long Upper { get; }
        /// <summary>The first byte taken.</summary>
        public long First { get; }
        /// <summary>The end of the bytes taken.</summary>
        public long End { get; }
    }

    /// <summary>Constraints on the place of a buffer.</summary>
    public sealed class BufferConstraint
    {
        /// <summary>The offset is a multiple of it; 0: 1.</summary>
        public long Alignment { get; set; }
        /// <summary>The buffer's offset; null: any.</summary>
        public long? Offset { get; set; }
        /// <summary>Gaps, which must not overlap; null: none.</summary>
        public IReadOnlyList<BufferGap> Gaps { get; set; }
    }

    /// <summary>Offsets for any buffers that share memory, not only those of a plan.</summary>
    public sealed unsafe class Packing
    {
        private Packing(IReadOnlyList<long> offsets, stw_pack_result native)
        {
            Offsets = offsets;
            Answer = (PackAnswer)native.answer;
            Height = Numbers.Of(native.height);
            Bound = Numbers.Of(native.bound);
            Nodes = Numbers.Of(native.nodes);
        }

        /// <summary>The offsets; null if no placement within the capacity was found.</summary>
        public IReadOnlyList<long> Offsets { get; }
        /// <summary>The answer of the search.</summary>
        public PackAnswer Answer { get; }
        /// <summary>
        /// Largest offset + size of the lowest placement found, within the capacity or not.
        /// </summary>
        public long Height { get; }
        /// <summary>Proven: no placement is lower.</summary>
        public long Bound { get; }
        /// <summary>Decisions that the search took.</summary>
        public long Nodes { get; }

        /// <summary>Gives buffers offsets so that buffers that are alive at the same time do not overlap,
        /// within a capacity (0: as low as possible) and a number of decisions (0: 1,000,000). There is one
        /// constraint for each buffer; null: none.</summary>
        /// <exception cref="StowageException">BadArgument if an upper is below its lower, if 2^62 bytes or
        /// more are needed, or if constraints contradict each other</exception>
        public static Packing Find(IReadOnlyList<Lifetime> lifetimes, long capacity = 0, long nodeLimit = 0,
            IReadOnlyList<BufferConstraint> constraints = null)
        {
            var given = Numbers.NotNull(lifetimes, nameof(lifetimes))
                .Select(one => new stw_buffer_lifetime { lower = one.Lower, upper = one.Upper,
                    size = Numbers.Unsigned(one.Size, nameof(one.Size)) }).ToArray();
            var offsets = new ulong[given.Length];
            stw_pack_options options = stw_pack_options.Sized();
            options.capacity = Numbers.Unsigned(capacity, nameof(capacity));
            options.node_limit = Numbers.Unsigned(nodeLimit, nameof(nodeLimit));
            if (constraints != null && constraints.Count != given.Length)
                throw new ArgumentException("expected " + given.Length +
                    " of them, one for each buffer, found " + constraints.Count,
                    nameof(constraints));
            BufferConstraint[] held = (constraints ?? Array.Empty<BufferConstraint>())
                .Select(one => one ?? new BufferConstraint()).ToArray();
            stw_buffer_gap[] gaps = held.SelectMany(one => one.Gaps ?? Array.Empty<BufferGap>())
                .Select(gap => new stw_buffer_gap
            {
                lower = gap.Lower,
                upper = gap.Upper,
                first = Numbers.Unsigned(gap.First, nameof(gap.First)),
                end = Numbers.Unsigned(gap.End, nameof(gap.End)),
            }).ToArray();
            stw_buffer_constraint[] places = held.Select(one => new stw_buffer_constraint
            {
                alignment = Numbers.Unsigned(one.Alignment, nameof(one.Alignment)),
                offset = Numbers.Unsigned(one.Offset ?? 0, nameof(one.Offset)),
                set_mask = one.Offset != null ? STW_SET_OFFSET : 0,
                gap_count = (uint)(one.Gaps?.Count ?? 0),
            }).ToArray();
            stw_pack_result native = stw_pack_result.Sized();
            stw_error error = stw_error.Sized();
            int status;
            fixed (stw_buffer_lifetime* buffers = given)
            fixed (ulong* to = offsets)
            fixed (stw_buffer_gap* allGaps = gaps)
            fixed (stw_buffer_constraint* allPlaces = places)
            {
                stw_buffer_gap* next = allGaps;
                for (int i = 0; i < places.Length; ++i)
                {
                    allPlaces[i].gaps = next;
                    next += allPlaces[i].gap_count;
                }
                options.constraints = allPlaces;
                status = stw_pack(to, buffers, (UIntPtr)given.Length, &options, &native, &error);
            }
            if (status == STW_OVER_BUDGET)
                return new Packing(null, native);
            Errors.Check(status, &error);
            return new Packing(Array.ConvertAll(offsets, Numbers.Of), native);
        }
    }
}
