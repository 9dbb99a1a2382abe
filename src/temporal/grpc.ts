/** The gRPC codes that we tell apart. */
export const GRPC = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unavailable: 14,
  cancelled: 1,
} as const;
