using System;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>What the library answers instead of success: the codes of stowage.h.</summary>
    public enum Status
    {
        /// <summary>Success, which no exception has.</summary>
        Ok = STW_OK,
        /// <summary>STW_BAD_ARGUMENT</summary>
        BadArgument = STW_BAD_ARGUMENT,
        /// <summary>STW_BAD_STRUCT_SIZE</summary>
        BadStructSize = STW_BAD_STRUCT_SIZE,
        /// <summary>STW_BAD_STATE</summary>
        BadState = STW_BAD_STATE,
        /// <summary>STW_UNSUPPORTED</summary>
        Unsupported = STW_UNSUPPORTED,
        /// <summary>STW_UNSUPPORTED_FIELD</summary>
        UnsupportedField = STW_UNSUPPORTED_FIELD,
        /// <summary>STW_UNSUPPORTED_SHAPE</summary>
        UnsupportedShape = STW_UNSUPPORTED_SHAPE,
        /// <summary>STW_OUT_OF_MEMORY</summary>
        OutOfMemory = STW_OUT_OF_MEMORY,
        /// <summary>STW_OVER_BUDGET: <see cref="OverBudgetException"/></summary>
        OverBudget = STW_OVER_BUDGET,
        /// <summary>STW_HOST_OUT_OF_MEMORY</summary>
        HostOutOfMemory = STW_HOST_OUT_OF_MEMORY,
        /// <summary>STW_DEVICE_ERROR</summary>
        DeviceError = STW_DEVICE_ERROR,
        /// <summary>STW_DEVICE_LOST</summary>
        DeviceLost = STW_DEVICE_LOST,
        /// <summary>STW_IO_ERROR</summary>
        IOError = STW_IO_ERROR,
        /// <summary>STW_CORRUPT</summary>
        Corrupt = STW_CORRUPT,
        /// <summary>STW_CANCELLED: by <see cref="Trainer.Cancel"/></summary>
        Cancelled = STW_CANCELLED,
        /// <summary>STW_CALLBACK_FAILED</summary>
        CallbackFailed = STW_CALLBACK_FAILED,
        /// <summary>STW_NUMERIC</summary>
        Numeric = STW_NUMERIC,
        /// <summary>STW_NON_FINITE</summary>
        NonFinite = STW_NON_FINITE,
        /// <summary>STW_INTERNAL</summary>
        Internal = STW_INTERNAL,
    }

    /// <summary>What can be said of a <see cref="Status"/>.</summary>
    public static class StatusExtensions
    {
        /// <summary>Such as "STW_OVER_BUDGET".</summary>
        public static unsafe string Name(this Status status)
        {
            return Texts.Read(stw_status_name((int)status));
        }

        /// <summary>Such as <see cref="Status.OutOfMemory"/> of <see cref="Status.OverBudget"/>.</summary>
        public static Status Category(this Status status)
        {
            return (Status)((int)status / 1000 * 1000);
        }
    }

    /// <summary>A status, one line of text, and what else there is to know.</summary>
    public class StowageException : Exception
    {
        /// <summary>What the library answered.</summary>
        public Status Status { get; }
        /// <summary>errno or cudaError_t, else 0.</summary>
        public int NativeCode { get; }
        /// <summary>Where memory was missing, else 0.</summary>
        public long BytesNeeded { get; }
        /// <summary>Where memory was missing, else 0.</summary>
        public long BytesAvailable { get; }

        internal StowageException(Status status, string text) : base($"{status.Name()}: {text}")
        {
            Status = status;
        }

        internal unsafe StowageException(int status, stw_error* error, Exception cause) : base(Line((Status)status, Texts.Read(error->message, 480)), cause)
        {
            Status = (Status)status;
            NativeCode = error->native_code;
            BytesNeeded = Numbers.Of(error->bytes_needed);
            BytesAvailable = Numbers.Of(error->bytes_available);
        }

        private static string Line(Status status, string text)
        {
            return text.Length == 0 ? status.Name() : $"{status.Name()}: {text}";
        }
    }

    /// <summary>Nothing fits: <see cref="StowageException.BytesNeeded"/> says what would.</summary>
    public sealed class OverBudgetException : StowageException
    {
        /// <summary>Where a plan was asked for, the one that needs the least: it cannot be trained, but has a report, and what could be given up. Else null.</summary>
        public Plan Plan { get; }

        internal unsafe OverBudgetException(stw_error* error, Plan plan) : base(STW_OVER_BUDGET, error, null)
        {
            Plan = plan;
        }
    }

    internal static unsafe class Errors
    {
        /// <summary>Throws what an entry returned and wrote, if that is no success, and what of the host's was the cause of it.</summary>
        public static void Check(int status, stw_error* error, Exception cause = null)
        {
            if (status == STW_OVER_BUDGET)
                throw new OverBudgetException(error, null);
            if (status != STW_OK)
                throw new StowageException(status, error, cause);
        }

        /// <summary>Of an entry without an error.</summary>
        public static void Check(int status)
        {
            stw_error none = stw_error.Sized();
            Check(status, &none);
        }
    }
}
