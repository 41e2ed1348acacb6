// Tests bindings/csharp with the library. csharp_test.py compiles it and runs it as csharp_test.exe
// ABI_TEST_C [CASE...].
using System;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;

// Cases are its public methods, in one file for each subject. Each prints a line in GoogleTest's format,
// which tools/count_tests.py counts.
internal sealed partial class Cases
{
    private readonly string abi;
    private readonly string folder = Path.Combine(
        Path.GetTempPath(), "stowage-csharp-" + Process.GetCurrentProcess().Id);

    private Cases(string abi)
    {
        this.abi = File.ReadAllText(abi);
        Directory.CreateDirectory(folder);
    }

    private static int Main(string[] given)
    {
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        var cases = new Cases(given[0]);
        bool isOk = true;
        foreach (MethodInfo one in typeof(Cases).GetMethods(
            BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly))
        {
            if (given.Length > 1 && !given.Skip(1).Contains(one.Name))
                continue;
            var watch = Stopwatch.StartNew();
            string ended = "[       OK ]";
            try
            {
                one.Invoke(cases, null);
            }
            catch (TargetInvocationException exception)
            {
                Console.WriteLine(exception.InnerException);
                ended = "[  FAILED  ]";
                isOk = false;
            }
            Console.WriteLine($"{ended} csharp.{one.Name} ({watch.ElapsedMilliseconds} ms)");
        }
        Directory.Delete(cases.folder, true);
        return isOk ? 0 : 1;
    }
}
