using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Stowage
{
    /// <summary>C strings and arrays that are freed together.</summary>
    internal sealed unsafe class Texts : IDisposable
    {
        private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);
        private readonly List<IntPtr> taken = new List<IntPtr>();
        private readonly List<Held> held = new List<Held>();

        /// <summary>A C string; null becomes NULL.</summary>
        public byte* Of(string text)
        {
            return Of(text, out _);
        }

        /// <summary>A C string, and its bytes without the zero byte at its end.</summary>
        public byte* Of(string text, out UIntPtr bytes)
        {
            byte[] encoded = text == null ? new byte[0] : Encoded(text);
            bytes = (UIntPtr)encoded.Length;
            if (text == null)
                return null;
            byte* copy = (byte*)Take(encoded.Length + 1);
            Marshal.Copy(encoded, 0, (IntPtr)copy, encoded.Length);
            return copy;
        }

        /// <summary>An array of C strings; NULL if there are none.</summary>
        public byte** Of(IReadOnlyList<string> texts)
        {
            if (texts == null || texts.Count == 0)
                return null;
            byte** array = (byte**)Take((long)texts.Count * sizeof(byte*));
            for (int i = 0; i < texts.Count; ++i)
                array[i] = Of(texts[i] ?? throw new ArgumentNullException(nameof(texts)));
            return array;
        }

        /// <summary>Zeroed memory, until all is freed.</summary>
        public void* Take(long bytes)
        {
            IntPtr memory = Marshal.AllocHGlobal((IntPtr)bytes);
            taken.Add(memory);
            for (long i = 0; i < bytes; ++i)
                ((byte*)memory)[i] = 0;
            return (void*)memory;
        }

        /// <summary>The address of a watch, valid until all is freed; null becomes NULL.</summary>
        public Abi.stw_watch* Of(Watch watch)
        {
            if (watch == null)
                return null;
            held.Add(watch.Hold());
            return (Abi.stw_watch*)held[held.Count - 1].Pointer;
        }

        public void Dispose()
        {
            foreach (Held one in held)
                one.Dispose();
            held.Clear();
            foreach (IntPtr memory in taken)
                Marshal.FreeHGlobal(memory);
            taken.Clear();
        }

        /// <summary>Refuses a zero byte, which C would take for the end of the text, and strings that are not
        /// Unicode.</summary>
        private static byte[] Encoded(string text)
        {
            if (text.IndexOf('\0') >= 0)
                throw new StowageException(Status.BadArgument, "a zero byte in a text");
            try
            {
                return Strict.GetBytes(text);
            }
            catch (EncoderFallbackException)
            {
                throw new StowageException(Status.BadArgument, "half of a surrogate pair in a text");
            }
        }

        /// <summary>The text of a C string; null for NULL.</summary>
        public static string Read(byte* text)
        {
            return text == null ? null : Read(text, int.MaxValue);
        }

        /// <summary>The text of an array in a struct. A character that was cut becomes the replacement
        /// character.</summary>
        public static string Read(byte* text, int capacity)
        {
            int length = 0;
            while (length < capacity && text[length] != 0)
                ++length;
            return Encoding.UTF8.GetString(text, length);
        }

        public delegate byte* NameAt(UIntPtr index);

        /// <summary>All names that an entry gives, from index 0 on.</summary>
        public static IReadOnlyList<string> All(NameAt at)
        {
            var found = new List<string>();
            for (string name = Read(at(UIntPtr.Zero)); name != null; name = Read(at((UIntPtr)found.Count)))
                found.Add(name);
            return found;
        }
    }
}
