using System;

namespace Stowage
{
    /// <summary>Between the numbers of C# and those of C, which mostly have no sign.</summary>
    internal static class Numbers
    {
        /// <summary>Of C's; the largest there is where it is larger.</summary>
        public static long Of(ulong value)
        {
            return value > long.MaxValue ? long.MaxValue : (long)value;
        }

        public static int Of(uint value)
        {
            return value > int.MaxValue ? int.MaxValue : (int)value;
        }

        public static uint Unsigned(int value, string name)
        {
            return (uint)NotNegative(value, name);
        }

        public static ulong Unsigned(long value, string name)
        {
            return (ulong)NotNegative(value, name);
        }

        public static uint Flag(bool value)
        {
            return value ? 1u : 0u;
        }

        private static long NotNegative(long value, string name)
        {
            return value >= 0 ? value : throw new StowageException(Status.BadArgument, $"{name}: expected 0 or more, found {value}");
        }

        public static T Given<T>(T value, string name) where T : class
        {
            return value ?? throw new ArgumentNullException(name);
        }
    }
}
