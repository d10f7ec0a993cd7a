// `npm run pictures`: draws the pictures of the documents into docs/images, light and dark.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

/** Rows of steps from left to right. A step of usher's is drawn in its colour; `no` is the way out of a step that refuses. In `continues`, one row leads on to the next. */
const PICTURES = {
  "way-of-a-pod": {
    title: "The way of a pod",
    continues: true,
    rows: [
      [
        { name: "Client", lines: ["kubectl apply", "or a controller"] },
        { name: "API server", lines: ["who is it, may they,", "defaults"] },
        {
          name: "usher: mutate",
          usher: true,
          lines: [
            "placement adds criteria",
            "pod-os writes the OS",
            "node-guard steers away",
            "from protected nodes",
          ],
        },
        { name: "API server", lines: ["schema and", "other webhooks"] },
        {
          name: "usher: validate",
          usher: true,
          lines: ["may it use its node,", "Pod Security by OS,", "enforced placement"],
          no: "refused: reason, field, code, what to do",
        },
      ],
      [
        { name: "etcd", lines: ["the pod, with what it", "had before usher"] },
        { name: "Scheduler", lines: ["picks a node that", "meets the criteria"] },
        {
          name: "usher: bind",
          usher: true,
          lines: ["node-guard judges", "the chosen node"],
          no: "refused: the pod stays pending",
        },
        { name: "Node", lines: ["the kubelet", "runs the pod"] },
      ],
    ],
  },
  "way-of-a-node": {
    title: "The way of a node",
    rows: [
      [
        { name: "Kubelet", lines: ["registers its node"] },
        {
          name: "usher: mutate-node",
          usher: true,
          lines: ["rules for its name", "add labels and taints"],
        },
        { name: "etcd", lines: ["labelled from the first", "moment it exists"] },
        { name: "Scheduler", lines: ["sees the labels at once"] },
      ],
      [
        { name: "Someone", lines: ["edits a rule", "or the node"] },
        { name: "Informer", lines: ["a heartbeat is", "not a change"] },
        { name: "usher: leader", usher: true, lines: ["compares the node with", "what its rules want"] },
        { name: "API server", lines: ["one patch, guarded by", "the resourceVersion"] },
      ],
    ],
  },
  "way-of-a-project": {
    title: "The way of a project",
    continues: true,
    rows: [
      [
        { name: "User", lines: ["asks for a project"] },
        { name: "API server", lines: ["who is it, may they"] },
        {
          name: "usher: validate",
          usher: true,
          lines: ["reads the user's limit", "and the ledger, once"],
          no: "refused: 3 of 3 projects",
        },
        {
          name: "Ledger",
          usher: true,
          lines: ["one reservation, by", "compare and swap;", "exact with any", "number of replicas"],
        },
        { name: "API server", lines: ["creates the project"] },
      ],
      [
        { name: "Project", lines: ["exists, or was", "never created"] },
        { name: "usher: leader", usher: true, lines: ["settles or releases", "the reservation"] },
        { name: "Ledger", usher: true, lines: ["as many entries", "as projects"] },
      ],
    ],
  },
};

/** Workloads on the left, nodes on the right; an arrow means that usher allows it, a crossed one that it does not. */
const PLACEMENTS = {
  "team-pools": {
    title: "One policy: the label team of a namespace names its nodes",
    from: ["payments (team blue)", "search (team red)", "sandbox (no team)"],
    to: ["blue-0", "red-0", "shared-0"],
    arrows: [
      [0, 0, true],
      [1, 1, true],
      [2, 2, true],
    ],
  },
  "gpu-nodes": {
    title: "GPU nodes are for the namespace ml",
    from: ["ml/training", "team-a/miner"],
    to: ["gpu-0 (protected)", "worker-0"],
    arrows: [
      [0, 0, true],
      [1, 0, false],
      [1, 1, true],
    ],
  },
  "edge-nodes": {
    title: "Rules label nodes by their names",
    from: ["edge-north-1", "core-7"],
    to: ["pool=edge, site=north", "taint dedicated=edge", "no label of the domain"],
    arrows: [
      [0, 0, true],
      [0, 1, true],
      [1, 2, true],
    ],
  },
  "project-quota": {
    title: "Two projects for each user, ten for bob",
    from: ["alice, third project", "bob, second project"],
    to: ["stored"],
    arrows: [
      [0, 0, false],
      [1, 0, true],
    ],
  },
  "windows-nodes": {
    title: "Pods for Windows reach Windows nodes",
    from: ["reports (windows)", "web (linux)"],
    to: ["win-0", "lin-0"],
    arrows: [
      [0, 0, true],
      [0, 1, false],
      [1, 1, true],
    ],
  },
  restricted: {
    title: "Two of three workloads would be refused at restricted",
    from: ["Deployment web", "CronJob backup", "Deployment reports"],
    to: ["shop at restricted"],
    arrows: [
      [0, 0, false],
      [1, 0, false],
      [2, 0, true],
    ],
  },
};

const COLOURS = {
  "": {
    text: "#1b1f24",
    muted: "#57606a",
    box: "#f6f8fa",
    edge: "#c4ccd4",
    own: "#ddf4ff",
    ownEdge: "#0969da",
    no: "#b42318",
  },
  "-dark": {
    text: "#e6edf3",
    muted: "#9aa4af",
    box: "#161b22",
    edge: "#3d444d",
    own: "#0c2d4d",
    ownEdge: "#4493f8",
    no: "#ff8e85",
  },
};

const BOX = { width: 172, height: 118, gap: 34, line: 17 };
const ROW = 190;
const MARGIN = 20;

function draw({ title, rows, continues }, colours) {
  const columns = Math.max(...rows.map((row) => row.length));
  const width = 2 * MARGIN + columns * BOX.width + (columns - 1) * BOX.gap;
  const height =
    2 * MARGIN + (rows.length - 1) * ROW + BOX.height + (rows.at(-1).some(({ no }) => no) ? 44 : 0);
  const text = rows.flat().flatMap(({ name, lines, no }) => [name, ...lines, no ?? ""]);
  const drawn = rows.map((row, index) =>
    drawRow(row, MARGIN + index * ROW, continues && index < rows.length - 1, colours),
  );
  const label = `${title}: ${text.filter(Boolean).join(", ")}`;
  return framed(label, width, height, drawn.join("\n"), colours);
}

function drawRow(row, top, continues, colours) {
  const left = (index) => MARGIN + index * (BOX.width + BOX.gap);
  const middle = top + BOX.height / 2;
  const parts = row.map((step, index) => drawStep(step, left(index), top, colours));
  for (let index = 1; index < row.length; index++)
    parts.push(
      `<path d="M${left(index) - BOX.gap + 4} ${middle}H${left(index) - 5}" stroke="${colours.muted}" stroke-width="1.5" marker-end="url(#arrow)"/>`,
    );
  if (continues) {
    const right = left(row.length - 1) + BOX.width;
    const turn = top + ROW - 18;
    const start = right - 28;
    parts.push(
      `<path d="M${start} ${top + BOX.height + 4}V${turn}H${MARGIN + BOX.width / 2}V${top + ROW - 5}" fill="none" stroke="${colours.muted}" stroke-width="1.5" marker-end="url(#arrow)"/>`,
    );
  }
  return parts.join("\n");
}

function drawStep({ name, lines, usher, no }, x, y, colours) {
  const centre = x + BOX.width / 2;
  const top = y + (BOX.height - 24 - lines.length * BOX.line) / 2;
  const parts = [
    `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="8" fill="${usher ? colours.own : colours.box}" stroke="${usher ? colours.ownEdge : colours.edge}"/>`,
    `<text x="${centre}" y="${top + 14}" text-anchor="middle" font-weight="600" font-size="14" fill="${colours.text}">${name}</text>`,
    ...lines.map(
      (line, index) =>
        `<text x="${centre}" y="${top + 37 + index * BOX.line}" text-anchor="middle" fill="${colours.muted}">${line}</text>`,
    ),
  ];
  if (no !== undefined) {
    const from = y + BOX.height;
    parts.push(
      `<path d="M${centre - 40} ${from + 4}v16" stroke="${colours.no}" stroke-width="1.5" marker-end="url(#out)"/>`,
      `<text x="${centre - 48}" y="${from + 18}" text-anchor="end" fill="${colours.no}">${no}</text>`,
    );
  }
  return parts.join("\n");
}

const CHIP = { width: 250, height: 38, gap: 16, between: 190 };

function drawPlacement({ title, from, to, arrows }, colours) {
  const rows = Math.max(from.length, to.length);
  const width = 2 * (MARGIN + CHIP.width) + CHIP.between;
  const height = 2 * MARGIN + rows * CHIP.height + (rows - 1) * CHIP.gap;
  const top = (index, all) => MARGIN + ((rows - all.length) / 2 + index) * (CHIP.height + CHIP.gap);
  const chip = (label, x, y, own) =>
    `<rect x="${x}" y="${y}" width="${CHIP.width}" height="${CHIP.height}" rx="8" fill="${own ? colours.own : colours.box}" stroke="${own ? colours.ownEdge : colours.edge}"/><text x="${x + CHIP.width / 2}" y="${y + 24}" text-anchor="middle" fill="${colours.text}">${label}</text>`;
  const start = MARGIN + CHIP.width;
  const parts = [
    ...from.map((label, index) => chip(label, MARGIN, top(index, from), false)),
    ...to.map((label, index) => chip(label, start + CHIP.between, top(index, to), true)),
    ...arrows.map(([left, right, allowed]) => {
      const [y1, y2] = [top(left, from) + CHIP.height / 2, top(right, to) + CHIP.height / 2];
      const [x, y] = [start + CHIP.between / 2, (y1 + y2) / 2];
      const line = `<path d="M${start + 5} ${y1}L${start + CHIP.between - 6} ${y2}" stroke="${allowed ? colours.muted : colours.no}" stroke-width="1.5"${allowed ? "" : ' stroke-dasharray="5 4"'} marker-end="url(#${allowed ? "arrow" : "out"})"/>`;
      const cross = `<path d="M${x - 6} ${y - 6}l12 12m0 -12l-12 12" stroke="${colours.no}" stroke-width="2.5"/>`;
      return allowed ? line : line + cross;
    }),
  ];
  return framed(title, width, height, parts.join("\n"), colours);
}

/** The element around a drawing, with its arrowheads. */
function framed(label, width, height, content, colours) {
  const head = (id, colour) =>
    `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="${colour}"/></marker>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="13">
<defs>${head("arrow", colours.muted)}${head("out", colours.no)}</defs>
${content}
</svg>
`;
}

mkdirSync(join(root, "docs/images"), { recursive: true });
for (const [theme, colours] of Object.entries(COLOURS)) {
  const write = (name, svg) => writeFileSync(join(root, `docs/images/${name}${theme}.svg`), svg);
  for (const [name, picture] of Object.entries(PICTURES)) write(name, draw(picture, colours));
  for (const [name, picture] of Object.entries(PLACEMENTS)) write(name, drawPlacement(picture, colours));
}
