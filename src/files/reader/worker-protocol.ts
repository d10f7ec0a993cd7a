import type { Located, ReadDocument, Wanted } from "./read-documents.ts";

/** What the main thread asks of the worker. Each question has a number; answers come with it, in the order of the questions. */
export type WorkerRequest = { readonly id: number; readonly path: string } & (
  | { readonly known: readonly string[] }
  | { readonly wanted: readonly Wanted[] }
);

/** Documents that are known come as their place in the list that was sent with the question: numbers cost nearly nothing to send. */
export type WorkerResponse = { readonly id: number } & (
  | { readonly documents: readonly (ReadDocument | number)[]; readonly done: number; readonly total: number }
  | { readonly problems: readonly Located[] }
  | { readonly located: readonly (Located | undefined)[] }
  | { readonly unreadable: string }
);

/** New documents in one message: enough that messages cost little, few enough that taking one in never blocks for long. */
export const DOCUMENTS_A_MESSAGE = 64;

/** Known ones besides. */
export const NUMBERS_A_MESSAGE = 4_096;
