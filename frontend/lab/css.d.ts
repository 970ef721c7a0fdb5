declare module "*.css" {
  const sheet: string;
  export default sheet;
}
