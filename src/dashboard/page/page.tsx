// The frame of the page: navigation, search, the state of the connection. Names no module: lenses, groupings and tables come from the
// process.
import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Overview } from "../model.ts";
import { ExplainView } from "./explain.tsx";
import { LiveView } from "./live.tsx";
import { NodesView } from "./nodes.tsx";
import { Badge, Busy, Empty, Failure, Finder, Icon, type IconName, resultHref } from "./parts.tsx";
import { PoliciesView } from "./policies.tsx";
import {
  address,
  connect,
  connection,
  connections,
  go,
  setTheme,
  signedOut,
  source,
  type Theme,
  theme,
  useData,
} from "./state.ts";
import { TableView } from "./table.tsx";
import { WhatIfView } from "./what-if.tsx";

interface ViewLink {
  readonly path: string;
  readonly title: string;
}

function viewsOf(overview: Overview | undefined): readonly ViewLink[] {
  return [
    { path: "/nodes", title: "Nodes" },
    { path: "/policies", title: "Policies" },
    { path: "/explain", title: "Explain" },
    { path: "/what-if", title: "What if" },
    ...(overview?.tables ?? []).map(({ name, title }) => ({ path: `/tables/${name}`, title })),
    { path: "/live", title: "Live" },
  ];
}

const THEMES: readonly { readonly value: Theme; readonly title: string; readonly icon: IconName }[] = [
  { value: "auto", title: "as the system", icon: "auto" },
  { value: "light", title: "light", icon: "sun" },
  { value: "dark", title: "dark", icon: "moon" },
];

function ThemeSwitch() {
  const index = THEMES.findIndex(({ value }) => value === theme.value);
  const present = THEMES[index];
  const next = THEMES[(index + 1) % THEMES.length];
  if (present === undefined || next === undefined) return null;
  return (
    <button
      type="button"
      class="button icon-only"
      aria-label={`Colours: ${present.title}. Change to ${next.title}`}
      title={`Colours: ${present.title}`}
      onClick={() => setTheme(next.value)}
    >
      <Icon name={present.icon} />
    </button>
  );
}

/** The source, and the age of the shown state. */
function SourceLine() {
  const state = source.value;
  const lost = connection.value === "lost";
  const tone = lost
    ? "bad"
    : state === undefined || state.state === "waiting"
      ? "none"
      : state.state === "stale"
        ? "warning"
        : "good";
  const text = lost
    ? "not connected"
    : state === undefined
      ? "connecting"
      : { waiting: "reading", ready: state.live ? "live" : "files", stale: "stale" }[state.state];
  return (
    <span class="source" role="status">
      <bdi class="source-name" title={state?.name}>
        {state?.name}
      </bdi>
      <Badge tone={tone}>{text}</Badge>
    </span>
  );
}

function Banners() {
  const state = source.value;
  return (
    <div class="banners" role="status">
      {connection.value === "lost" && !signedOut.value && (
        <p class="banner bad">
          <strong>The connection to usher is lost.</strong> The page shows what it last read and connects
          again by itself. If it does not, look at the terminal where usher dashboard runs.
        </p>
      )}
      {connection.value === "open" && state?.state === "stale" && (
        <p class="banner warning">
          <strong>{state.live ? "The API server" : "The source"} can't be read now.</strong> The page shows
          the state of {new Date(state.since).toLocaleTimeString("en-GB")}.
        </p>
      )}
      {state !== undefined && state.partial.length > 0 && (
        <p class="banner warning">
          <strong>Some resources can't be read, so that the page is partial:</strong>{" "}
          {state.partial.join("; ")}
        </p>
      )}
    </div>
  );
}

function SignedOut() {
  return (
    <Empty title="This page is not signed in">
      Open the URL that <code>usher dashboard</code> printed in its terminal. Its token is used once; start
      usher dashboard again for a new one.
    </Empty>
  );
}

function Search({ views }: { readonly views: readonly ViewLink[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = useSignal(false);
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const typing =
        event.target instanceof Element && event.target.closest("input, textarea, select") !== null;
      const isOpener =
        ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") ||
        (event.key === "/" && !typing);
      if (!isOpener) return;
      event.preventDefault();
      open.value = true;
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  useLayoutEffect(() => {
    if (open.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open.value]);
  const close = (): void => {
    open.value = false;
  };
  return (
    <>
      <button
        type="button"
        class="button search-button"
        onClick={() => (open.value = true)}
        aria-keyshortcuts="Control+K"
      >
        <Icon name="search" />
        <span>Search</span>
        <kbd>Ctrl K</kbd>
      </button>
      <dialog
        ref={dialog}
        class="search"
        aria-label="Search"
        onClose={close}
        onClick={(event) => {
          if (event.target === dialog.current) close();
        }}
      >
        {open.value && (
          <div class="search-box">
            <Finder
              inline
              autoFocus
              label="Search"
              placeholder="Pods, workloads, nodes, policies, users"
              onChoose={(result) => {
                close();
                go(resultHref(result));
              }}
            />
            <nav class="search-views" aria-label="Views">
              {views.map(({ path, title }) => (
                <a href={path} onClick={close}>
                  {title}
                </a>
              ))}
            </nav>
          </div>
        )}
      </dialog>
    </>
  );
}

function View({ overview }: { readonly overview: Overview }) {
  const { pathname } = address.value;
  if (pathname.startsWith("/tables/")) {
    const name = decodeURIComponent(pathname.slice("/tables/".length));
    return <TableView key={name} name={name} />;
  }
  switch (pathname) {
    case "/":
    case "/nodes":
      return <NodesView overview={overview} />;
    case "/policies":
      return <PoliciesView />;
    case "/explain":
      return <ExplainView overview={overview} />;
    case "/what-if":
      return <WhatIfView overview={overview} />;
    case "/live":
      return <LiveView />;
    default:
      return (
        <Empty title="There is no such view">
          <a href="/nodes">Show the nodes</a>
        </Empty>
      );
  }
}

function Page() {
  const { data, error, slow } = useData<Overview>("/api/overview", connections);
  // The source line comes with the events too; before the first of them it has the overview.
  useEffect(() => {
    if (data !== undefined && source.value === undefined) source.value = data.source;
  }, [data]);
  const views = viewsOf(data);
  const { pathname } = address.value;
  const present = views.find(({ path }) => path === pathname || (pathname === "/" && path === "/nodes"));
  const main = useRef<HTMLElement>(null);
  const nav = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    else {
      scrollTo(0, 0);
      if (document.activeElement === document.body || document.activeElement?.closest("nav") !== null)
        main.current?.focus({ preventScroll: true });
    }
  }, [pathname]);
  useEffect(() => {
    document.title = present === undefined ? "Usher" : `${present.title} · Usher`;
    // In a narrow window the views scroll sideways. scrollIntoView would move the start of the Tab order.
    const link = nav.current?.querySelector("[aria-current]");
    if (nav.current !== null && link instanceof HTMLElement)
      nav.current.scrollLeft = link.offsetLeft - (nav.current.clientWidth - link.offsetWidth) / 2;
  }, [present?.title, views.length]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/nodes" aria-label="Usher: nodes">
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <path d="M4 3v5.500a4 4 0 0 0 8 0V3" />
          </svg>
          <span>usher</span>
        </a>
        <nav ref={nav} class="views" aria-label="Views">
          {views.map(({ path, title }) => (
            <a href={path} aria-current={path === present?.path ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div class="top-end">
          <SourceLine />
          <Search views={views} />
          <ThemeSwitch />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Banners />
        {(signedOut.value ||
          data === undefined ||
          (present === undefined && !pathname.startsWith("/tables/"))) && <h1 class="unseen">Usher</h1>}
        {signedOut.value ? (
          <SignedOut />
        ) : data !== undefined ? (
          <View overview={{ ...data, source: source.value ?? data.source }} />
        ) : error !== undefined ? (
          <Failure error={error} />
        ) : (
          <Busy slow={slow} what="Connecting" />
        )}
      </main>
    </>
  );
}

setTheme(theme.value);
connect();
const root = document.getElementById("page");
if (root !== null) render(<Page />, root);
