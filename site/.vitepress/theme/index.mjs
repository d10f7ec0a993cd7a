import theme from "vitepress/theme";
import "./pictures.css";

export default theme;
