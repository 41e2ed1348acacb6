using System;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The library's status codes, as in stowage.h.</summary>
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

    /// <summary>Methods of <see cref="Status"/>.</summary>
    public static class StatusExtensions
    {
        /// <summary>The name of the code, such as "STW_OVER_BUDGET".</summary>
        public static unsafe string Name(this Status status)
        {
            return Texts.Read(stw_status_name((int)status));
        }

        /// <summary>The category of the code, such as <see cref="Status.OutOfMemory"/> for
        /// <see cref="Status.OverBudget"/>.</summary>
        public static Status Category(this Status status)
        {
            return (Status)((int)status / 1000 * 1000);
        }
    }

    /// <summary>A failure: a status, one line of text, and details.</summary>
    public class StowageException : Exception
    {
        /// <summary>The code of the failure.</summary>
        public Status Status { get; }
        /// <summary>errno or cudaError_t, else 0.</summary>
        public int NativeCode { get; }
        /// <summary>Bytes, if there was too little memory; else 0.</summary>
        public long BytesNeeded { get; }
        /// <summary>Bytes, if there was too little memory; else 0.</summary>
        public long BytesAvailable { get; }

        internal StowageException(Status status, string text) : base($"{status.Name()}: {text}")
        {
            Status = status;
        }

        internal unsafe StowageException(int status, stw_error* error, Exception cause)
            : base(Line((Status)status, Texts.Read(error->message, 480)), cause)
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

    /// <summary>Nothing fits the budget. <see cref="StowageException.BytesNeeded"/> is a budget that
    /// works.</summary>
    public sealed class OverBudgetException : StowageException
    {
        /// <summary>If planning failed: the plan that needs the least memory. It cannot be trained, but it
        /// has a report and the settings that would help. Else null.</summary>
        public Plan Plan { get; }

        internal unsafe OverBudgetException(stw_error* error, Plan plan) : base(STW_OVER_BUDGET, error, null)
        {
            Plan = plan;
        }
    }

    internal static unsafe class Errors
    {
        /// <summary>Throws if an entry failed. The arguments are the status that the entry returned, the
        /// error that it wrote, and the host's exception that caused the failure.</summary>
        public static void Check(int status, stw_error* error, Exception cause = null)
        {
            if (status == STW_OVER_BUDGET)
                throw new OverBudgetException(error, null);
            if (status != STW_OK)
                throw new StowageException(status, error, cause);
        }

        /// <summary>Throws if an entry without an error argument failed.</summary>
        public static void Check(int status)
        {
            stw_error none = stw_error.Sized();
            Check(status, &none);
        }
    }
}
