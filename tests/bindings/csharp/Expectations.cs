using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using Stowage;

internal sealed class CaseFailed : Exception
{
    public CaseFailed(string what) : base(what)
    {
    }
}

internal sealed partial class Cases
{
    private static void Equal<T>(T found, T expected, [CallerLineNumber] int line = 0)
    {
        if (!EqualityComparer<T>.Default.Equals(found, expected))
            throw new CaseFailed($"line {line}: expected {expected}, found {found}");
    }

    private static void AllEqual<T>(IEnumerable<T> found, IEnumerable<T> expected,
        [CallerLineNumber] int line = 0)
    {
        Equal(string.Join(" ", found), string.Join(" ", expected), line);
    }

    private static void True(bool found, [CallerLineNumber] int line = 0)
    {
        Equal(found, true, line);
    }

    private static E Throws<E>(Action action, [CallerLineNumber] int line = 0) where E : Exception
    {
        try
        {
            action();
        }
        catch (E exception)
        {
            return exception;
        }
        throw new CaseFailed($"line {line}: expected a {typeof(E).Name}, found none");
    }

    private static StowageException Throws(Status status, Action action, [CallerLineNumber] int line = 0)
    {
        var exception = Throws<StowageException>(action, line);
        Equal(exception.Status, status, line);
        return exception;
    }

    private string Fresh(string name)
    {
        string path = Path.Combine(folder, name);
        Directory.CreateDirectory(path);
        return path;
    }

    private Dataset Data(double? heldOut = null)
    {
        string path = Path.Combine(folder, "data.bin");
        if (!File.Exists(path))
            File.WriteAllBytes(path, Enumerable.Range(0, 4000)
                .SelectMany(i => BitConverter.GetBytes((ushort)(i * i / 7 % 64))).ToArray());
        return new Dataset(path, new DatasetOptions { Vocabulary = 64, Sequence = World.Length,
            HeldOut = heldOut });
    }
}
