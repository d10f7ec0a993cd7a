// Members of classes that only tests or benchmarks use: knip checks exports, not members. Prints each and exits with
// code 1 if there is one.
import { join, relative } from "node:path";
import { SyntaxKind } from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";
import { root } from "./setup.mjs";

const MEMBERS = new Set([
  SyntaxKind.MethodDeclaration,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
  SyntaxKind.PropertyDeclaration,
]);
const CLASSES = new Set([SyntaxKind.ClassDeclaration, SyntaxKind.ClassExpression]);

const api = new API({ cwd: root });
const config = join(root, "tsconfig.json");
const { checker, program } = api.updateSnapshot({ openProject: config }).getProject(config);

/** Members that production code declares. */
const members = [];
/** Names that production code reads, the node whose type has them, and the member of a class that reads. */
const reads = [];
for (const file of program.getSourceFileNames()) {
  const path = relative(root, file);
  if (/^(src|deploy)\//.test(path) && !path.endsWith(".test.ts")) {
    const source = program.getSourceFile(file);
    collect(source, source, path, undefined);
  }
}

function collect(node, file, path, within) {
  const isMember = MEMBERS.has(node.kind) && CLASSES.has(node.parent?.kind);
  // A test needs to see some state, such as the size of a bounded map; such a getter is marked.
  const isForTests = isMember && file.text.slice(node.pos, node.name.end).includes("@visibleForTesting");
  if (isMember && node.name.kind === SyntaxKind.Identifier && !isForTests) members.push({ node, path });
  const reader = isMember ? node : within;
  if (node.kind === SyntaxKind.PropertyAccessExpression)
    reads.push({ names: [node.name.text], of: node.expression, reader });
  if (node.kind === SyntaxKind.ElementAccessExpression)
    reads.push({ key: node.argumentExpression, of: node.expression, reader });
  if (node.kind === SyntaxKind.ObjectBindingPattern) {
    const names = node.elements.map(({ propertyName, name }) => (propertyName ?? name).text);
    reads.push({ names, of: node, reader });
  }
  node.forEachChild((child) => {
    collect(child, file, path, reader);
  });
}

/** The literals that a key may be, such as the methods in `evaluator[phase]`. */
function literalsOf(key) {
  const type = checker.getTypeAtLocation(key);
  return (type?.getTypes?.() ?? [type]).flatMap((one) => (typeof one?.value === "string" ? [one.value] : []));
}

const names = new Set(members.map(({ node }) => node.name.text));
const readsOf = new Map([...names].map((name) => [name, []]));
for (const { key, of, reader, ...read } of reads) {
  for (const name of read.names ?? literalsOf(key)) readsOf.get(name)?.push({ of, reader });
}

/** Whether production code reads the member of its class, or of a type that an instance of the class can have. */
function isUsed({ node }) {
  const { name, parent } = node;
  const type = checker.getTypeAtLocation(parent.name);
  const declared = new Set(declarations([checker.getSymbolAtLocation(name), ...inherited(node)]));
  // An override of a library's method is called by the library.
  if ([...declared].some((place) => place.includes("/node_modules/"))) return true;
  return readsOf.get(name.text).some(({ of, reader }) => {
    const found = typesOf(of);
    // A method that calls the method which it overrides is not a use of it.
    const overrides = reader?.name.text === name.text && inherited(reader).length > 0;
    if (found.length === 0 || overrides) return found.length === 0;
    const symbols = found.map((one) => checker.getPropertyOfType(one, name.text));
    if (declarations(symbols).some((place) => declared.has(place))) return true;
    return found.some((one) => checker.isTypeAssignableTo(type, one));
  });
}

/** The members of the same name in the types that the class extends or implements. */
function inherited({ name, parent }) {
  const types = (parent.heritageClauses ?? []).flatMap((clause) => clause.types);
  return types.flatMap((type) => checker.getPropertyOfType(checker.getTypeAtLocation(type), name.text) ?? []);
}

function declarations(symbols) {
  return symbols.flatMap((symbol) =>
    (symbol?.declarations ?? []).map(({ path, index }) => `${path}:${index}`),
  );
}

/** The types that the node may have, without null and undefined. */
function typesOf(node) {
  const type = checker.getTypeAtLocation(node);
  if (type === undefined) return [];
  const known = checker.getNonNullableType(checker.getBaseConstraintOfType(type) ?? type) ?? type;
  return known.getTypes?.() ?? [known];
}

const unused = members.filter((member) => !isUsed(member));
for (const { node, path } of unused)
  console.log(`${path}: ${node.parent.name?.text ?? "class"}.${node.name.text} is not used in production`);
api.close();
process.exit(unused.length === 0 ? 0 : 1);
