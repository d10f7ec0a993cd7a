// Parts that several views share.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import type { Tone } from "../../core/module/shown.ts";
import type {
  LensValue,
  LocatedProblem,
  ObjectRef,
  PolicyLink,
  SearchResult,
  SearchResults,
} from "../model.ts";
import { type ApiFailure, api, explainHref, href } from "./state.ts";

// ------------------------------------------------------------------------------------------------------------------- icons

const PATHS = {
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4 4l8 8M12 4l-8 8",
  warning: "M8 3v6M8 12.2v.3",
  dot: "M8 8h.01",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.5M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7z",
  auto: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  right: "M6 3.500L10.500 8 6 12.500",
  down: "M3.500 6L8 10.500 12.500 6",
  map: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z",
  copy: "M5.500 5.500v-3h8v8h-3M2.500 5.500h8v8h-8z",
  pause: "M5.500 3v10M10.500 3v10",
  play: "M4.500 3l8 5-8 5z",
  pencil: "M2.500 13.500l.8-3.300 7.700-7.700 2.500 2.500-7.700 7.700z",
  explain: "M5.500 6a2.500 2.500 0 1 1 3.500 2.300c-.7.3-1 .8-1 1.700M8 12.700v.1",
  swap: "M3 5.500h9M9.500 3L12 5.500 9.500 8M13 10.500H4M6.500 8L4 10.500 6.500 13",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

const TONE_ICONS: Readonly<Record<Tone, IconName | undefined>> = {
  good: "check",
  warning: "warning",
  bad: "cross",
  plain: "dot",
  none: undefined,
};

/** A judgement by colour and by shape. */
export function ToneMark({ tone }: { readonly tone: Tone }) {
  const icon = TONE_ICONS[tone];
  return <span class={`mark tone-${tone}`}>{icon === undefined ? null : <Icon name={icon} />}</span>;
}

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class={`badge tone-${tone}`}>
      <ToneMark tone={tone} />
      <span>{children}</span>
    </span>
  );
}

// ------------------------------------------------------------------------------------------------------------------- texts

export function count(number: number): string {
  return number.toLocaleString("en");
}

/** `1 node`, `2 nodes` */
export function counted(number: number, plural: string): string {
  return `${count(number)} ${number === 1 ? singular(plural) : plural}`;
}

function singular(plural: string): string {
  return plural.endsWith("ies") ? `${plural.slice(0, -3)}y` : plural.replace(/s$/, "");
}

export function PolicyName({ link }: { readonly link: PolicyLink }) {
  if (link.id === undefined) return <span>{link.title}</span>;
  return <a href={href("/policies", { policy: link.id })}>{link.title}</a>;
}

export function PolicyNames({ links }: { readonly links: readonly PolicyLink[] }) {
  return (
    <>
      {links.map((link, index) => (
        <>
          {index > 0 && ", "}
          <PolicyName link={link} />
        </>
      ))}
    </>
  );
}

/** What if, with the manifest of an object to start from. */
export function editHref({ kind, namespace, name }: ObjectRef): string {
  return href("/what-if", { edit: `${kind}/${namespace}/${name}` });
}

/** The policies that a lens names; for a problem, with a link to try a change of them. */
export function By({ value }: { readonly value: LensValue }) {
  if (value.policies.length === 0) return null;
  const [first] = value.policies;
  const [kind = "", one = "", two] = (first?.id ?? "").split("/");
  const object = two === undefined ? { kind, namespace: "", name: one } : { kind, namespace: one, name: two };
  return (
    <span class="muted">
      By <PolicyNames links={value.policies} />
      {(value.tone === "warning" || value.tone === "bad") && kind !== "" && (
        <>
          {" · "}
          <a href={editHref(object)}>what if it is edited?</a>
        </>
      )}
    </span>
  );
}

export function ObjectLink({
  object,
  withKind = true,
}: {
  readonly object: ObjectRef;
  readonly withKind?: boolean;
}) {
  const { kind, namespace, name } = object;
  return (
    <a href={explainHref(object)} class="object">
      {withKind && <span class="kind">{kind} </span>}
      <bdi>{namespace === "" ? name : `${namespace}/${name}`}</bdi>
    </a>
  );
}

const SIGNS: Readonly<Record<string, string>> = {
  "+": "added",
  "-": "removed",
  "=": "already set",
  "!": "problem",
  "~": "changed",
};

/** A change with its sign: `+ nodeSelector pool=etcd`. */
export function Change({ line }: { readonly line: string }) {
  const sign = line[0] ?? "";
  const known = line[1] === " " ? SIGNS[sign] : undefined;
  if (known === undefined) return <li class="change">{line}</li>;
  return (
    <li class={`change ${known.replace(" ", "-")}`}>
      <span class="sign" title={known}>
        {sign === "-" ? "−" : sign}
      </span>
      <bdi>{line.slice(2)}</bdi>
    </li>
  );
}

export function Changes({ lines }: { readonly lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <ul class="changes">
      {lines.map((line) => (
        <Change line={line} />
      ))}
    </ul>
  );
}

export function ProblemList({ problems }: { readonly problems: readonly LocatedProblem[] }) {
  return (
    <ul class="problems">
      {problems.map(({ severity, message, hint, file, line, column, object }) => (
        <li>
          <ToneMark tone={severity === "error" ? "bad" : "warning"} />
          <div>
            <div>
              {object !== undefined && <strong>{object}: </strong>}
              {message}
            </div>
            {hint !== undefined && <div class="muted">{hint}</div>}
            {file !== undefined && (
              <div class="muted code">
                {[file, line, column].filter((part) => part !== undefined).join(":")}
              </div>
            )}
            {file === undefined && line !== undefined && <div class="muted">line {line}</div>}
          </div>
        </li>
      ))}
    </ul>
  );
}

// ------------------------------------------------------------------------------------------------------------------ states

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

export function Failure({ error }: { readonly error: ApiFailure }) {
  return (
    <div class="failure" role="alert">
      <p class="failure-title">
        <ToneMark tone="bad" />
        <span class="failure-text">{error.message}</span>
      </p>
      {error.hint !== "" && <p>{error.hint}</p>}
      {error.problems.length > 0 && <ProblemList problems={error.problems} />}
    </div>
  );
}

/** Shown only if a call takes longer than a moment. */
export function Busy({ slow, what }: { readonly slow: boolean; readonly what: string }) {
  return (
    <div class="busy" role="status">
      {slow && (
        <>
          <span class="spinner" />
          {what} …
        </>
      )}
    </div>
  );
}

// ---------------------------------------------------------------------------------------------------------------- controls

export interface Choice {
  readonly value: string;
  readonly title: ComponentChildren;
}

/** A choice between a few options, all visible. */
export function Segments(props: {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onChange: (value: string) => void;
  readonly hideLabel?: boolean;
}) {
  const name = useId();
  return (
    <fieldset class="segments">
      <legend class={props.hideLabel === true ? "unseen" : "label"}>{props.label}</legend>
      <div class="segments-row">
        {props.choices.map(({ value, title }) => (
          <label class={value === props.value ? "segment chosen" : "segment"}>
            <input
              type="radio"
              name={name}
              value={value}
              checked={value === props.value}
              onChange={() => props.onChange(value)}
            />
            {title}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function Select(props: {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly { readonly value: string; readonly title: string }[];
  readonly onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label class="label" for={id}>
        {props.label}
      </label>
      <select
        id={id}
        value={props.value}
        onChange={({ currentTarget }) => props.onChange(currentTarget.value)}
      >
        {props.choices.map(({ value, title }) => (
          <option value={value} selected={value === props.value}>
            {title}
          </option>
        ))}
      </select>
    </div>
  );
}

export function TextField(props: {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly onInput: (value: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label class="label" for={id}>
        {props.label}
      </label>
      <input
        id={id}
        type="search"
        value={props.value}
        placeholder={props.placeholder}
        spellcheck={false}
        onInput={({ currentTarget }) => props.onInput(currentTarget.value)}
      />
    </div>
  );
}

export function CopyButton({
  text,
  children,
}: {
  readonly text: string;
  readonly children: ComponentChildren;
}) {
  const done = useSignal(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    done.value = true;
    setTimeout(() => {
      done.value = false;
    }, 2_000);
  };
  return (
    <button type="button" class="button" onClick={() => void copy()}>
      <Icon name={done.value ? "check" : "copy"} />
      <span role="status">{done.value ? "Copied" : children}</span>
    </button>
  );
}

/** What a command prints, or a manifest: scrolls by itself, and by keyboard. */
export function Code({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <pre class="code-block" role="region" tabIndex={0} aria-label={label}>
      {text}
    </pre>
  );
}

export function Diff({ title, lines }: { readonly title: string; readonly lines: readonly string[] }) {
  const kind = (line: string) => ({ "+": "added", "-": "removed", "@": "hunk" })[line[0] ?? ""] ?? "context";
  return (
    <figure class="diff">
      <figcaption>{title}</figcaption>
      <pre class="code-block" role="region" tabIndex={0} aria-label={title}>
        {lines.map((line) => (
          <span class={`diff-line ${kind(line)}`}>{`${line}\n`}</span>
        ))}
      </pre>
    </figure>
  );
}

/** A long table shows more rows on request. */
export function useShown(step: number, reset: string) {
  const shown = useSignal(step);
  useEffect(() => {
    shown.value = step;
  }, [reset]);
  return {
    limit: shown.value,
    More: ({ total, noun }: { readonly total: number; readonly noun: string }) =>
      total <= shown.value ? null : (
        <p class="more">
          <button type="button" class="button" onClick={() => (shown.value += step)}>
            Show {count(Math.min(step, total - shown.value))} more
          </button>
          <span class="muted">
            {count(shown.value)} of {counted(total, noun)}
          </span>
        </p>
      ),
  };
}

// ------------------------------------------------------------------------------------------------------------------ search

/** Where a result of the search leads. */
export function resultHref({ what, object, id }: SearchResult): string {
  if (what === "view") return id ?? "/nodes";
  if (what === "node") return href("/nodes", { node: object.name });
  if (what === "policy") return href("/policies", { policy: id });
  return explainHref(object);
}

/** A text field with results below it, which arrow keys choose from. */
export function Finder(props: {
  readonly label: string;
  readonly placeholder: string;
  readonly onChoose: (result: SearchResult) => void;
  readonly only?: readonly SearchResult["what"][];
  readonly autoFocus?: boolean;
  /** Results stay below the field; otherwise over what follows. */
  readonly inline?: boolean;
  readonly value?: string;
}) {
  const id = useId();
  const text = useSignal(props.value ?? "");
  const results = useSignal<readonly SearchResult[]>([]);
  const searched = useSignal("");
  const active = useSignal(0);
  const open = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  // Both happen before the next key: an effect after the next frame would lose the keys typed until then.
  useLayoutEffect(() => {
    if (props.autoFocus === true) input.current?.focus();
  }, []);
  useLayoutEffect(() => {
    text.value = props.value ?? "";
  }, [props.value]);
  useEffect(() => {
    const query = text.value.trim();
    if (query === "" || !open.value) {
      results.value = [];
      searched.value = "";
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const answer = await api<SearchResults>(href("/api/search", { q: query }), undefined, abort.signal);
        results.value = answer.results.filter(({ what }) => props.only?.includes(what) ?? true);
        searched.value = query;
        active.value = 0;
      } catch {
        results.value = [];
      }
    }, 80);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text.value, open.value]);
  const choose = (result: SearchResult | undefined): void => {
    if (result === undefined) return;
    open.value = false;
    text.value = "";
    props.onChoose(result);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : undefined;
    if (step !== undefined && results.value.length > 0) {
      event.preventDefault();
      active.value = (active.value + step + results.value.length) % results.value.length;
      document.getElementById(`${id}-${active.value}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(results.value[active.value]);
    } else if (event.key === "Escape" && props.inline !== true) open.value = false;
  };
  const shown = open.value && results.value.length > 0;
  const none = open.value && searched.value !== "" && results.value.length === 0;
  return (
    <div class={props.inline === true ? "finder inline" : "finder"}>
      <label class={props.inline === true ? "unseen" : "label"} for={id}>
        {props.label}
      </label>
      <input
        ref={input}
        id={id}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        aria-expanded={shown}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={shown ? `${id}-${active.value}` : undefined}
        placeholder={props.placeholder}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          open.value = true;
        }}
        onBlur={() => {
          open.value = props.inline === true;
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={`${id}-list`} role="listbox" aria-label="Results" class="results" hidden={!shown}>
        {results.value.map((result, index) => (
          <li
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active.value}
            class={index === active.value ? "result active" : "result"}
            onMouseDown={(event) => event.preventDefault()}
            onMouseMove={() => (active.value = index)}
            onClick={() => choose(result)}
          >
            <span class="result-kind">{result.what}</span>
            <bdi class="result-name">
              {result.what === "view" || result.object.namespace === ""
                ? result.object.name
                : `${result.object.namespace}/${result.object.name}`}
            </bdi>
            <span class="muted">
              {result.what === "workload" ? `${result.object.kind} · ` : ""}
              {result.note}
            </span>
          </li>
        ))}
      </ul>
      <p role="status" class={none ? "finder-none" : "unseen"}>
        {none
          ? `Nothing has “${searched.value}” in its name.`
          : shown
            ? counted(results.value.length, "results")
            : ""}
      </p>
    </div>
  );
}

/** The panel at the side that shows one thing of a view. */
export function Panel(props: {
  readonly title: string;
  readonly kind: string;
  readonly closeHref: string;
  readonly children: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  // A screen reader reads the chosen item next.
  useEffect(() => heading.current?.focus({ preventScroll: true }), [props.title]);
  return (
    <aside class="panel" aria-label={`${props.kind} ${props.title}`}>
      <header class="panel-header">
        <div>
          <div class="overline">{props.kind}</div>
          <h2 ref={heading} tabIndex={-1}>
            <bdi>{props.title}</bdi>
          </h2>
        </div>
        <a class="button icon-only" href={props.closeHref} aria-label="Close">
          <Icon name="cross" />
        </a>
      </header>
      <div class="panel-body">{props.children}</div>
    </aside>
  );
}
