import type { TLSSocket } from "node:tls";
import { factsOf, type Log } from "../../core/log.ts";
import type { Caller } from "../review/deadline.ts";
import type { Handle } from "../review/handle.ts";
import type { HttpResponse } from "../review/http-response.ts";
import type { Limits } from "./limits.ts";
import { plainAnswer, TOO_SLOW } from "./plain-answer.ts";
import { type PlainHead, PlainHeads } from "./plain-head.ts";
import type { Sender, UnfinishedBodies } from "./unfinished-bodies.ts";

/** What a connection asks of those who keep it. */
export interface PlainHouse {
  readonly limits: Limits;
  readonly handle: Handle;
  readonly log: Log;
  readonly unfinished: UnfinishedBodies;
  /** Whether answers close their connections from now on. */
  readonly goodbye: () => boolean;
  /** Whether who called may. Who may not is told so by Node's way. */
  readonly welcome: (socket: TLSSocket) => boolean;
  /** A first request has come. */
  readonly used: (socket: TLSSocket) => void;
  /** An answer was handed to the network, or nobody was there any more to have it. */
  readonly answered: (reply: HttpResponse, gone: boolean, started: number) => void;
  /** The connection belongs to Node from here on; what came of it can be read from it again. */
  readonly leave: (connection: PlainConnection, socket: TLSSocket) => void;
}

/** What is kept of those who send the next request before they have the answer. More is no client's honest haste. */
const EARLY_BYTES = 64 * 1024;

/** Whoever waits for one answer. A connection outlives many of them, so that each has listeners of its own. */
class Call implements Caller {
  #gone: (() => void)[] = [];

  once(_: "close", listener: () => void): void {
    this.#gone.push(listener);
  }

  gone(): void {
    const told = this.#gone;
    this.#gone = [];
    for (const listener of told) listener();
  }
}

/**
 * One connection of an API server. Requests of the one form that API servers use are read here, for a quarter of what a webhook call
 * costs is Node's general HTTP. Whatever looks different in the least is Node's: the connection goes over to it, with all that was read.
 */
export class PlainConnection implements Sender {
  readonly #socket: TLSSocket;
  readonly #house: PlainHouse;
  #state: "new" | "reading" | "answering" | "idle" = "new";
  /** Since when it is in this state, of `performance.now()`. */
  #since = performance.now();
  readonly #heads = new PlainHeads();
  #head: PlainHead | undefined;
  /** Of the request that is being read, head and all; while one is being answered, of the next. */
  #chunks: Buffer[] = [];
  #length = 0;
  #call: Call | undefined;

  constructor(socket: TLSSocket, house: PlainHouse) {
    this.#socket = socket;
    this.#house = house;
    socket.on("data", this.#read);
    socket.on("end", this.#end);
    socket.on("close", this.#gone);
    socket.on("error", ignore);
  }

  /** Ends it where it has been in its state for too long. */
  check(now: number): void {
    const { headersMs, requestMs, keepAliveMs } = this.#house.limits;
    const most = {
      new: headersMs,
      reading: requestMs,
      idle: keepAliveMs,
      answering: Number.POSITIVE_INFINITY,
    };
    const socket = this.#socket;
    if (now - this.#since <= most[this.#state]) return;
    // Whoever does not read what is sent never reads its end either.
    if (this.#state === "idle" || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.write(TOO_SLOW);
    socket.destroySoon();
  }

  giveWay(): void {
    this.#socket.destroy();
  }

  /** Ends it if nobody waits for anything but for the rest of an answer. Others end with their answer. */
  endIdle(): void {
    if (this.#state !== "idle") return;
    if (this.#socket.writableLength > 0) this.#socket.destroySoon();
    else this.#socket.destroy();
  }

  readonly #read = (chunk: Buffer): void => this.#guarded(() => this.#take(chunk));

  /** A fault of ours costs this connection, and no other. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#house.log.error(factsOf(error), "a connection broke usher");
      this.#socket.destroy();
    }
  }

  #take(chunk: Buffer): void {
    // After the last answer nothing is heard any more.
    if (!this.#socket.writable) return;
    this.#keep(chunk);
    if (this.#state === "answering") {
      if (this.#length > EARLY_BYTES) this.#socket.destroy();
      return;
    }
    if (this.#head === undefined) {
      const head = this.#house.welcome(this.#socket) ? this.#heads.read(chunk) : undefined;
      if (head === undefined || head.length > this.#house.limits.bodyBytes) {
        this.#leave();
        return;
      }
      if (this.#state === "new") this.#house.used(this.#socket);
      this.#head = head;
      this.#enter("reading");
    }
    const { url, start, length } = this.#head;
    const end = start + length;
    if (this.#length < end) {
      this.#house.unfinished.hold(this, this.#length);
      return;
    }
    const all = this.#taken();
    // More than was announced is the next request. Clients of webhooks do not send two at once; Node knows what to do.
    if (all.length > end) this.#keep(all.subarray(end));
    this.#answer(url, all.subarray(start, end));
  }

  #keep(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  #answer(url: string, body: Buffer): void {
    const started = this.#since;
    const call = new Call();
    this.#call = call;
    this.#state = "answering";
    const reply = this.#house.handle(body, url, call, started);
    if (reply instanceof Promise) void reply.then((late) => this.#guarded(() => this.#send(late, started)));
    else this.#send(reply, started);
  }

  #send(reply: HttpResponse, started: number): void {
    const socket = this.#socket;
    this.#call = undefined;
    const gone = !socket.writable;
    let taken = true;
    if (!gone) {
      const closes = this.#house.goodbye();
      const { text, encoding } = plainAnswer(reply, closes);
      taken = socket.write(text, encoding);
      if (closes) socket.destroySoon();
    }
    this.#enter("idle");
    this.#house.answered(reply, gone, started);
    if (taken) this.#goOn();
    else this.#waitForReader();
  }

  /** What came while an answer was made is Node's. */
  #goOn(): void {
    if (this.#length > 0 && this.#socket.writable) this.#leave();
  }

  /**
   * Whoever does not read its answers gets no more of them. Until then the connection does not go over: Node would read what comes next
   * before what waits here.
   */
  #waitForReader(): void {
    this.#socket.pause();
    this.#socket.once("drain", () => {
      this.#socket.resume();
      this.#guarded(() => this.#goOn());
    });
  }

  #enter(state: "reading" | "idle"): void {
    this.#state = state;
    this.#since = performance.now();
  }

  /** What was read, which is forgotten with it. */
  #taken(): Buffer {
    this.#house.unfinished.release(this);
    const [first] = this.#chunks;
    const all = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#length = 0;
    this.#head = undefined;
    return all;
  }

  #leave(): void {
    const socket = this.#socket;
    socket.off("data", this.#read);
    socket.off("end", this.#end);
    socket.off("close", this.#gone);
    socket.off("error", ignore);
    socket.unshift(this.#taken());
    this.#house.leave(this, socket);
  }

  readonly #end = (): void => {
    this.#call?.gone();
    this.#socket.end();
  };

  readonly #gone = (): void => {
    this.#house.unfinished.release(this);
    this.#call?.gone();
  };
}

/** A connection that breaks also closes, and that is all there is to know. */
function ignore(): void {}
