using System;

namespace Stowage
{
    /// <summary>Converts between the numbers of C# and those of C, most of which are unsigned.</summary>
    internal static class Numbers
    {
        /// <summary>Converts a number of C. A number that is too large becomes the largest of C#.</summary>
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
            return value >= 0 ? value : throw new StowageException(
                Status.BadArgument, $"{name}: expected 0 or more, found {value}");
        }

        public static T NotNull<T>(T value, string name) where T : class
        {
            return value ?? throw new ArgumentNullException(name);
        }
    }
}
