"use strict";(()=>{function w(i,e){let t=e.text.split(`
`),n=r=>t.every((a,s)=>i[r+s]===a);if(n(e.first_line-1))return e.first_line;let o=i.flatMap((r,a)=>n(a)?[a+1]:[]);return o.length===1?o[0]:0}function O(i,e){if(e.cell)return i.find(n=>n.id===e.cell);let t=i.filter(n=>w(n.getSource().split(`
`),e));return t.length===1?t[0]:void 0}var L={en:{always:"Always (this session)",apply:"Apply",refused_changed:"The code has changed since it was checked. Run the cell again.","command.apply":"Autograd: apply the suggested change on this line","command.apply_and_run":"Autograd: apply the suggested change and run","command.audit":"Autograd: audit this cell","command.check":"Autograd: check the Function of this cell","command.explain":"Autograd: explain the last error","command.freeze":"Autograd: freeze this notebook as a page","command.graph":"Autograd: show the graph of the selected variable","command.next":"Autograd: go to the next finding","command.release":"Autograd: hide the change of this line",find:"Find the line",finding:"The cells run once more, in a copy of the process",ghost:"change that was tried",refused_gone:"The checked code is not in a cell of this notebook.",lines:"your lines of this error",no_kernel:"No kernel is connected.",open:"Show",stop:"Stop",traceback:"traceback, with {count} torch frames",refused_untrusted:"This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output.",line:"line {line}",apply_and_run:"Apply and run",more:"More"},zh:{always:"总是（本次会话）",apply:"应用",refused_changed:"代码在检查之后改过。请重新运行这个单元格。","command.apply":"Autograd：应用这一行的修改","command.apply_and_run":"Autograd：应用这一行的修改并运行","command.audit":"Autograd：审查这个单元格","command.check":"Autograd：检查这个单元格的 Function","command.explain":"Autograd：解释最近一次错误","command.freeze":"Autograd：把这个笔记本冻结成网页","command.graph":"Autograd：显示所选变量的计算图","command.next":"Autograd：转到下一处发现","command.release":"Autograd：隐藏这一行的修改",find:"找出这一行",finding:"正在进程的副本里重新运行这些单元格",ghost:"试过的修改",refused_gone:"检查过的代码不在这个笔记本的单元格里。",lines:"你的代码里与这个错误有关的行",no_kernel:"没有连接到内核。",open:"查看",stop:"停止",traceback:"回溯信息，其中有 {count} 个 torch 栈帧",refused_untrusted:"这个笔记本未受信任，不能应用修改。重新运行单元格即可信任它的输出。",line:"第 {line} 行",apply_and_run:"应用并运行",more:"更多"}};var b=i=>(e,t)=>(i==="zh"?L.zh:L.en)[e].replace(/\{(\w+)\}/g,(n,o)=>String(t?.[o]??n));function _({mark:i,checked:e,language:t,from:n,notebook:o},r,{NotebookActions:a}){let s=b(t),l=i.change,c=o.home(e);if(!l)return s("refused_gone");if(!n.trusted)return s("refused_untrusted");if(!c)return s("refused_gone");let d=c.sharedModel.getSource(),g=d.split(`
`),p=w(g,e);if(!p)return s("refused_changed");let f=l.line+p-e.first_line-1,h=g.slice(0,f).join(`
`).length+(f?1:0);if(c.sharedModel.transact(()=>c.sharedModel.updateSource(h,h+l.before.length,l.after)),!r)return"";let{panel:m}=o,x=m.content.widgets.filter(({model:k})=>k===c||k===n);return m.content.activate(),a.runCells(m.content,x,m.sessionContext),""}var Y=/^\s*%(re)?load_ext\s+nbautograd\b/m,Z=/[\p{L}_][\p{L}\p{N}_.]*/gu;function Q(i){let e=i?.editor?.editor.state;if(!e)return"";let{from:t,to:n,head:o}=e.selection.main,r=e.doc.toString();return t<n?r.slice(t,n).trim():[...r.matchAll(Z)].find(({0:a,index:s})=>s<=o&&o<=s+a.length)?.[0]??""}var X={check:()=>({above:"%%autograd_function --inputs "}),audit:()=>({above:"%%autograd_audit",runs:!0}),explain:()=>({line:"%autograd_explain --run"}),graph({content:i}){let e=Q(i.activeCell);return e?{line:`%autograd_graph ${e}`}:null},freeze:({context:i})=>({line:`!nbautograd freeze "${i.path.split("/").pop()}"`,saves:!0})},A=class{constructor(e,t,n,o){this.app=e,this.tracker=t,this.actions=n.notebook.NotebookActions,this.say=b(o),this.ids=[]}add(e,t,n){let o=`nbautograd:${t}`;this.ids.push(o),this.app.commands.addCommand(o,{label:this.say(e),execute:n,isEnabled:()=>!!this.tracker.currentWidget})}addWriting(){for(let[e,t]of Object.entries(X)){let n=`command.${e}`;this.add(n,e,()=>{let o=this.tracker.currentWidget,r=o&&t(o);if(r)return this.write(o,r)})}}async write(e,{line:t,above:n,runs:o,saves:r}){let{content:a}=e,s=a.activeCell;if(r&&await e.context.save(),t){let p=a.widgets.some(({model:h})=>Y.test(h.sharedModel.getSource()));this.actions.insertBelow(a);let f=a.activeCell;return f.model.sharedModel.setSource(p?t:`%load_ext nbautograd
${t}`),this.actions.runCells(a,[f],e.sessionContext)}if(!n||s?.model.type!=="code"||!s.editor)return;let{sharedModel:l}=s.model,c=l.getSource(),d=n.split(" ")[0];if(c.startsWith(d)||l.transact(()=>l.updateSource(0,0,`${n}
`)),o)return this.actions.runCells(a,[s],e.sessionContext);a.mode="edit",s.editor.focus();let{doc:g}=s.editor.editor.state;s.editor.editor.dispatch({selection:{anchor:g.line(1).to}})}};var ee=/[\u202a-\u202e\u2066-\u2069]/g,te=/((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)/,ne=/\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) \/ d (?=\S)/g,oe=/(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))/g;function z(i,e,t=[]){for(let[n,o]of Object.entries(typeof e=="string"?{class:e}:e??{}))if(!(o==null||o===!1))if(n==="on")for(let[r,a]of Object.entries(o))i.addEventListener(r,a);else i.setAttribute(n,o===!0?"":String(o));return i.append(...t.filter(n=>n!=null&&n!==!1).flatMap(n=>n instanceof Node?n:ae(i,String(n).replace(ee,"�")))),i}function ae(i,e){return!(i instanceof HTMLElement)||i.matches("option,pre,style")?[e]:e.replace(ne,"d $1 / d ").replace(oe," ").split(te).map((t,n)=>n%2?Object.assign(document.createElement("span"),{className:"whole",textContent:t}):t)}var u=(i,e,...t)=>z(document.createElement(i),e,t);var v=(i,e,t="button")=>u("button",{class:t,on:{click:e}},i);function y(i){let e=i.split(/`([^`\n]+)`/);return z(document.createDocumentFragment().appendChild(u("span")),null,e.map((t,n)=>n%2?u("code",null,t):t))}var T={bug:"✗",risk:"!",explained:"◆"},R=(i,e)=>u("pre",{class:"nbag-change",tabindex:"0"},u("code",null,...I(i,e)));function I({after:i,lit:e},t=0){return i.split(`
`).map((o,r)=>{let a=[],s=t;for(let[,l,c]of e.filter(([d])=>d===r))a.push(o.slice(s,l),u("mark","nbag-lit",o.slice(l,c))),s=c;return u("span","nbag-row",...a,o.slice(s))})}function D({found:i,line:e},t,n){let{mark:o,language:r,from:a}=i,s=b(r),l=o.change,c=l?l.after.match(/^ *(?=\S)/gm)??[]:[],d=Math.min(...c.map(h=>h.length)),g=u("p",{class:"nbag-said",role:"status"}),p=h=>()=>void(g.textContent=t(h)),f=v(s("apply"),p(!1),"nbag-button");return n&&f.append(u("kbd",{class:"nbag-key","aria-hidden":"true"},"Tab")),l&&!a.trusted&&(g.textContent=s("refused_untrusted")),u("section",{class:`nbag-card nbag-${o.tone}`,"aria-label":`${o.kind}, ${s("line",{line:e})}`},u("p",null,u("strong","nbag-kind",`${T[o.tone]} ${o.kind}`)," ",y(o.message)),l&&R(l,d),l&&u("p","nbag-note",y(l.note)),l&&a.trusted&&u("div","nbag-buttons",v(s("apply_and_run"),p(!0),"nbag-button nbag-first"),f),g)}var N=({found:i,exact:e})=>e&&i.from.trusted&&!!i.mark.change;function W(i,e){let t=e.length?i.toString().split(`
`):[];return e.flatMap(n=>{let o=w(t,n.checked);if(!o)return[];let r=o-n.checked.first_line,a=n.mark.line+r,s=n.mark.change,l=s?s.line+r:0,c=s?l+s.before.split(`
`).length-1:a,d=i.line(Math.min(a,l||a)).from,g=i.line(Math.max(a,c)).to;return[{found:n,line:a,from:d,to:g,change:l,exact:!0}]})}function re({given:i,placed:e},t){let n=W(t.newDoc,i),o=e.flatMap(r=>{if(n.some(({found:d})=>d===r.found))return[];if(t.changes.touchesRange(r.from,r.to))return[];let a=t.startState.doc.line(r.line).from,s=t.newDoc.lineAt(t.changes.mapPos(a,1)).number,[l,c]=[r.from,r.to].map(d=>t.changes.mapPos(d,1));return[{...r,line:s,from:l,to:c,change:0,exact:!1}]});return[...n,...o]}var S=class{constructor({view:e,state:t},n){this.view=e,this.state=t,this.apply=n,this.drawn=se(e,n);let o=()=>t.StateEffect.define();this.effects={set:o(),release:o(),open:o()},this.signs=new t.Compartment,this.field=this.stateField(),this.gutter=this.gutterOfSigns();let r=e.hoverTooltip((s,l)=>this.hovered(s,l)),a=e.EditorView.updateListener.of(s=>{let l=j(s.view,this.field);s.view.dom.parentElement?.classList.toggle("nbag-at-mark",!!l)});this.extension=[this.field,r,a,this.signs.of([])]}show(e,t){let n=this.signs.reconfigure(t.length?this.gutter:[]);e.dispatch({effects:[this.effects.set.of(t),n]})}of(e){return e.field(this.field)}stateField(){let{EditorView:e,showTooltip:t}=this.view;return this.state.StateField.define({create:()=>({given:[],placed:[],released:[],opened:null}),update:(n,o)=>this.updated(n,o),provide:n=>[e.decorations.compute([n],o=>this.decorations(o.field(n),o.doc)),t.compute([n],o=>{let{placed:r,opened:a}=o.field(n),s=r.find(({found:l})=>l===a);return s?this.tooltip(s,o.doc.line(s.line).from):null})]})}updated(e,t){let{set:n,release:o,open:r}=this.effects,a=e;t.docChanged?a={...a,placed:re(a,t),opened:null}:t.selection&&(a={...a,opened:null});for(let s of t.effects){let{value:l}=s,c=a.released.filter(d=>d!==l);s.is(n)&&(a={given:l,placed:W(t.newDoc,l),released:[],opened:null}),s.is(o)&&(a={...a,released:[...c,l],opened:null}),s.is(r)&&(a={...a,released:c,opened:l})}return a}decorations({placed:e,released:t},n){let{Decoration:o}=this.view,r=e.flatMap(a=>{let{mark:s}=a.found,{from:l,to:c}=n.line(a.line),[d,g]=s.columns,f=[o.mark({class:`nbag-under nbag-${s.tone}`}).range(l+d,Math.min(c,l+g))];if(N(a)&&!t.includes(a.found)){let h=new this.drawn.Ghost(a),m=o.widget({widget:h,block:!0,side:1});f.push(m.range(n.line(a.change+B(a)-1).to))}return f.filter(h=>h.from<h.to||h.value.spec.block)});return o.set(r,!0)}tooltip(e,t){let n=o=>this.apply(e,o);return{pos:t,above:!1,create:o=>({dom:u("div",null,D(e,n,j(o,this.field)===e))})}}hovered(e,t){let{number:n,from:o}=e.state.doc.lineAt(t),r=this.of(e.state).placed.find(({line:a})=>a===n);return r?this.tooltip(r,o):null}gutterOfSigns(){return this.view.gutter({class:"nbag-gutter",markers:({state:e})=>{let t=new Map;for(let{found:o,line:r}of this.of(e).placed)t.set(`${r} ${o.mark.tone}`,new this.drawn.Sign(o.mark).range(e.doc.line(r).from));let n=[...t.values()];return this.state.RangeSet.of(n,!0)},domEventHandlers:{mousedown:(e,t)=>{let n=this.of(e.state).placed.find(({line:o})=>e.state.doc.line(o).from===t.from);return n&&e.dispatch({effects:this.effects.open.of(n.found)}),!!n}}})}};function se({WidgetType:i,GutterMarker:e},t){class n extends i{constructor(a){super(),this.placed=a}eq(a){return a.placed.found===this.placed.found}toDOM(){return ie(this.placed,t)}}class o extends e{constructor(a){super(),this.mark=a}eq(a){return a.mark===this.mark}toDOM(){return u("span",`nbag-sign nbag-${this.mark.tone}`,T[this.mark.tone])}}return{Ghost:n,Sign:o}}var B=({found:i})=>i.mark.change?.before.split(`
`).length??0;function j(i,e){let{doc:t,selection:n}=i.state,{placed:o,released:r}=i.state.field(e),a=t.lineAt(n.main.head).number;return o.find(s=>N(s)&&!r.includes(s.found)&&(s.line===a||a>=s.change&&a<s.change+B(s)))}function ie(i,e){let{mark:t,language:n}=i.found,o=t.change,r=b(n),a=u("div",{class:"nbag-ghost",role:"note","aria-label":r("ghost")},u("code",null,...I(o)),u("span","nbag-note",y(o.note)),u("kbd","nbag-key","Tab"));return a.addEventListener("mousedown",s=>{s.preventDefault(),e(i,!1)}),a}async function P(i,e,t){let n=null,o="";for(let r of e){n=null;let a={code:r,store_history:!1,stop_on_error:!1},s=i.requestExecute(a,!0,{cellId:t});s.onIOPub=({header:l,content:c})=>{["display_data","update_display_data","execute_result"].includes(l.msg_type)&&(n=c.data["text/plain"]?c.data:n),l.msg_type==="stream"&&c.name==="stderr"&&(o+=c.text),l.msg_type==="error"&&(o=`${c.ename}: ${c.evalue}`)},await s.done.catch(l=>o=l.message)}return o?{data:null,words:o.trim()}:{data:n,words:""}}var E="application/vnd.nbautograd.explanation+json",le="%autograd_explain --on --run",de=/^.*File .*[\\/]torch[\\/].*$/gm,H=110;function K({Widget:i},e,t){return class extends i{constructor(n){super(),this.options=n,this.folded=null}async renderModel(n){let o=e.createRenderer("text/html",this.options);await o.renderModel(n),this.model=n,this.rest?.dispose(),this.rest=o,this.draw()}onAfterAttach(){this.draw()}onBeforeDetach(){this.folded?.classList.remove("nbag-folded")}dispose(){this.rest?.dispose(),super.dispose()}draw(){if(!this.model||!this.node.isConnected)return;let{data:n,trusted:o}=this.model,r=n[E],a=b(r.language),s=ce(this.node,t());this.folded?.classList.remove("nbag-folded"),this.folded=ue(this.node,s);let l=u("p",{class:"nbag-said",role:"status"});this.node.replaceChildren(u("section",{class:"nbag-wall","aria-label":r.answer},this.folded&&ge(this.folded,s,a),u("p","nbag-answer",y(r.answer)),r.rows.length>0&&pe(r,a),r.change&&R(r.change),r.change&&u("p","nbag-note",y(r.change.note)),o&&s&&fe(this.node,r,s,l),l,u("details",null,u("summary",null,a("more")),this.rest.node)))}}}function ce(i,e){let t=e.find(s=>s.node.contains(i)),n=t?.content.widgets.find(s=>s.node.contains(i))?.model,o=i.closest(".jp-OutputArea-child"),r=o?[...o.parentElement?.children??[]].indexOf(o):-1,a=n?.outputs;return!t||!n||!a||r<0||r>=a.length?null:E in a.get(r).data?{panel:t,cell:n,at:r}:null}function ue(i,e){let t=i.closest(".jp-OutputArea-child")?.previousElementSibling;return!e?.at||!(t instanceof HTMLElement)?null:e.cell.outputs?.get(e.at-1).type==="error"?t:null}function ge(i,e,t){let n=e?.at?e.cell.outputs?.get(e.at-1).toJSON():void 0,o=String(n?.evalue??"").split(/: \[|\. |\n/)[0],r=(n?.traceback??[]).join(`
`).replace(/\x1b\[[\d;]*m/g,"").match(de)??[];i.classList.add("nbag-folded");let a=v("",s,"nbag-fold");a.append(u("strong",null,n?.ename??""),` ${o.length>H?`${o.slice(0,H)}…`:o} `,u("span","nbag-note",t("traceback",{count:r.length}))),a.setAttribute("aria-expanded","false");function s(){let l=i.classList.toggle("nbag-folded");a.setAttribute("aria-expanded",String(!l))}return a}var pe=({rows:i},e)=>u("ol",{class:"nbag-arc","aria-label":e("lines")},...i.map(({role:t,place:n,text:o,main:r})=>u("li",r?"nbag-main":null,u("span","nbag-role",t),u("code",null,o),u("span","nbag-note",y(n)))));function fe(i,e,t,n){let o=b(e.language),r=(c,d,g="")=>v(o(c),d,`nbag-button ${g}`),a=c=>()=>{let d={change:e.change,run:c,refused:""};i.dispatchEvent(new CustomEvent("nbautograd:apply",{bubbles:!0,composed:!0,detail:d})),n.textContent=d.refused},s=c=>async()=>{let{panel:d,cell:g,at:p}=t,f=d.sessionContext.session?.kernel;if(!f)return void(n.textContent=o("no_kernel"));for(let k of l.querySelectorAll("button"))k.disabled=!0;let h=r("stop",()=>void f.interrupt());n.replaceChildren(o("finding"),u("progress",{"aria-label":o("finding")}),h);let{data:m,words:x}=await P(f,c,g.sharedModel.id);if(d.content.activate(),m)return g.outputs?.set(p,{output_type:"display_data",data:m,metadata:{}});n.textContent=x;for(let k of l.querySelectorAll("button"))k.disabled=!1},l=u("div","nbag-buttons",e.change&&r("apply_and_run",a(!0),"nbag-first"),e.change&&r("apply",a(!1)),e.find&&r("find",s([e.find]),"nbag-first"),e.find.includes("@")&&r("always",s([le,e.find])));return l}var C="application/vnd.nbautograd.marks+json",M=class{constructor(e,t,n){this.panel=e,this.show=t,this.ended=n,this.read=new Map,this.found=new Map,this.cells.changed.connect(()=>this.follow()),this.follow()}get cells(){return this.panel.content.model.cells}get all(){return Array.from({length:this.cells.length},(e,t)=>this.cells.get(t))}home(e){let t=O(this.all.map(n=>n.sharedModel),e);return this.all.find(n=>n.sharedModel===t)}follow(){let e=this.all.filter(t=>t.type==="code");for(let[t,{changed:n}]of this.read)e.includes(t)||(t.outputs?.changed.disconnect(n),t.stateChanged.disconnect(n),this.read.delete(t));for(let t of e)if(!this.read.has(t)){let n,o=()=>void Promise.resolve().then(()=>{this.reread(t),t.executionState==="running"?n??=performance.now():n!==void 0&&(this.ended(t,performance.now()-n),n=void 0)});this.read.set(t,{changed:o,outputs:F(t)}),t.outputs?.changed.connect(o),t.stateChanged.connect(o),t.contentChanged.connect(()=>this.again())}this.refresh()}reread(e){let t=this.read.get(e),n=F(e);!t||!n.length&&e.executionState==="running"||(t.outputs=n,this.refresh())}again(){[...this.read.values()].some(({outputs:t})=>t.some(n=>n.checked.some(o=>!o.cell)))&&this.refresh(),this.age()}age(){for(let{model:e,node:t}of this.panel.content.widgets){let n=this.read.get(e)?.outputs.find(({checked:r})=>r.some(a=>{let s=this.home(a);return s&&!w(s.sharedModel.getSource().split(`
`),a)})),o=t.querySelector(".jp-OutputArea");o&&(o.dataset.nbagOld=n?b(n.language)("refused_changed"):"")}}refresh(){let e=this.all.map(r=>r.sharedModel),t=new Map,n=new Set;for(let[r,{outputs:a}]of this.read)for(let{checked:s,marks:l,language:c}of a){let d=s.map(g=>O(e,g));for(let g of l){let p=d[g.checked],f=s[g.checked],h=JSON.stringify([p?.id,f.text,{...g,checked:0}]);if(!p||n.has(h))continue;n.add(h);let m=t.get(p.id)??[];t.set(p.id,[...m,{mark:g,checked:f,language:c,from:r,notebook:this}])}}let o=this.found;this.found=t;for(let r of new Set([...o.keys(),...t.keys()]))he(o.get(r),t.get(r))||this.show(r,t.get(r)??[]);this.age()}};function F({outputs:i}){return i?Array.from({length:i.length},(e,t)=>i.get(t).data[C]).filter(e=>e&&Array.isArray(e.marks)&&Array.isArray(e.checked)):[]}function he(i=[],e=[]){return i.length===e.length&&i.every(({mark:t,checked:n,from:o},r)=>{let a=e[r];return t===a.mark&&n===a.checked&&o===a.from})}var q=`.nbag-under {
  text-decoration-line: underline;
  text-decoration-thickness: 1.5px;
  text-underline-offset: 4px;
  text-decoration-skip-ink: none;
}
.nbag-under.nbag-bug {
  text-decoration-style: wavy;
  text-decoration-color: var(--nbag-bug);
}
.nbag-under.nbag-risk {
  text-decoration: none;
  border-bottom: 1.5px dashed var(--nbag-risk); /* dashes of a text decoration begin anew at each token */
}
.nbag-under.nbag-explained {
  text-decoration-style: double;
  text-decoration-color: var(--nbag-explained);
}
body {
  --nbag-bug: #c4162a;
  --nbag-risk: #8a5a00;
  --nbag-explained: #6f42c1;
  --nbag-new: #d7f2dd;
  --nbag-faint: #57606a;
}
body[data-jp-theme-light="false"] {
  --nbag-bug: #ff7b83;
  --nbag-risk: #e3b341;
  --nbag-explained: #c297ff;
  --nbag-new: #1d4d2b;
  --nbag-faint: #a8b1bb;
}
.nbag-gutter {
  min-width: 1.4em;
}
.nbag-sign {
  display: inline-block;
  width: 1.2em;
  font-weight: bold;
  text-align: center;
  cursor: pointer;
}
.nbag-sign.nbag-bug,
.nbag-card.nbag-bug .nbag-kind {
  color: var(--nbag-bug);
}
.nbag-sign.nbag-risk,
.nbag-card.nbag-risk .nbag-kind {
  color: var(--nbag-risk);
}
.nbag-sign.nbag-explained,
.nbag-card.nbag-explained .nbag-kind {
  color: var(--nbag-explained);
}
.nbag-ghost {
  display: flex;
  flex-wrap: wrap;
  gap: 0 1.5em;
  align-items: baseline;
  margin-top: 3px;
  padding: 0 6px;
  cursor: pointer;
}
.nbag-ghost,
.nbag-change {
  background: color-mix(in srgb, var(--nbag-new) 45%, var(--jp-layout-color1));
}
.nbag-ghost code {
  max-width: 100%;
  overflow-x: auto;
}
.nbag-ghost .nbag-note {
  white-space: normal;
}
/* a line is as wide as the longest one, which a narrow editor does not show */
@media (max-width: 900px) {
  .nbag-ghost code {
    flex-basis: 100%;
  }
}
.nbag-ghost code,
.nbag-change code {
  font: inherit;
  color: var(--jp-content-font-color1);
  background: none;
  padding: 0;
}
.nbag-row {
  display: block;
  min-height: 1.2em;
  white-space: pre;
}
mark.nbag-lit {
  color: inherit;
  background: var(--nbag-new);
  border-radius: 2px;
  font-weight: bold;
}
.nbag-note {
  color: var(--nbag-faint);
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size1);
}
.nbag-key {
  visibility: hidden;
  padding: 0 6px;
  border: 1px solid var(--nbag-faint);
  border-radius: 3px;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font: var(--jp-ui-font-size0) var(--jp-ui-font-family);
}
.nbag-at-mark .nbag-key {
  visibility: visible;
}
.nbag-card .nbag-key {
  visibility: visible;
  margin-left: 6px;
}
.nbag-card {
  max-width: min(46em, 80vw);
  padding: 8px 12px;
  border-left: 4px solid var(--nbag-bug);
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font: var(--jp-ui-font-size1) / 1.45 var(--jp-ui-font-family);
}
.nbag-card.nbag-risk {
  border-left: 4px dashed var(--nbag-risk);
}
.nbag-card.nbag-explained {
  border-left: 6px double var(--nbag-explained);
}
.nbag-card p,
.nbag-wall p {
  margin: 0 0 6px;
}
.nbag-card p:empty,
.nbag-wall p:empty {
  display: none;
}
.nbag-card code,
.nbag-wall code {
  color: var(--jp-content-font-color1);
  background: none;
  font-family: var(--jp-code-font-family);
}
.nbag-change {
  overflow-x: auto;
  margin: 0 0 6px;
  padding: 4px 6px;
  font: var(--jp-code-font-size) / 1.4 var(--jp-code-font-family);
}
[data-nbag-old]:not(:empty)::before {
  content: attr(data-nbag-old);
  display: block;
  padding-left: calc(var(--jp-cell-prompt-width) + 5px);
  color: var(--nbag-faint);
}
.nbag-folded {
  display: none !important;
}
.nbag-wall {
  margin: 2px 0 6px;
  padding: 6px 12px;
  border-left: 6px double var(--nbag-explained);
  color: var(--jp-ui-font-color1);
  font: var(--jp-ui-font-size1) / 1.5 var(--jp-ui-font-family);
}
.nbag-answer {
  font-weight: bold;
}
.nbag-fold {
  margin: 0 0 6px;
  padding: 0;
  border: 0;
  color: inherit;
  background: none;
  font: inherit;
  text-align: left;
  cursor: pointer;
}
.nbag-fold::before {
  content: "▸ ";
}
.nbag-fold[aria-expanded="true"]::before {
  content: "▾ ";
}
.nbag-fold strong {
  color: var(--nbag-bug);
}
.nbag-arc {
  margin: 0 0 8px;
  padding: 0;
  list-style: none;
}
.nbag-arc li {
  position: relative;
  display: grid;
  grid-template-columns: 11em minmax(0, max-content) 1fr;
  gap: 0 1em;
  align-items: baseline;
  padding: 2px 0 2px 22px;
}
.nbag-arc code {
  overflow-x: auto;
  white-space: pre;
}
.nbag-arc li::before {
  position: absolute;
  top: 0;
  bottom: 0;
  left: 6px;
  border-left: 2px solid var(--nbag-explained);
  content: "";
}
.nbag-arc li:first-child::before {
  top: 0.9em;
}
.nbag-arc li:last-child::before {
  bottom: calc(100% - 0.9em);
}
.nbag-arc li::after {
  position: absolute;
  top: 0.55em;
  left: 2px;
  border: 5px solid var(--nbag-explained); /* not a ground, which forced colours take away */
  border-radius: 50%;
  content: "";
}
.nbag-arc .nbag-main .nbag-role {
  color: var(--nbag-bug);
  font-weight: bold;
}
.nbag-arc .nbag-main::after {
  border-color: var(--nbag-bug);
  border-radius: 0;
  transform: rotate(45deg);
}
.nbag-said progress {
  margin: 0 1em;
  vertical-align: middle;
}
.nbag-buttons {
  display: flex;
  gap: 8px;
  margin: 4px 0;
}
.nbag-button {
  padding: 3px 12px;
  border: 1px solid var(--jp-ui-font-color2);
  border-radius: 3px;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font: inherit;
  cursor: pointer;
}
.nbag-button.nbag-first {
  border-color: transparent;
  color: var(--jp-layout-color1);
  background: var(--jp-brand-color1);
}
.nbag-button:disabled {
  opacity: 0.5;
}
.nbag-button:focus-visible,
.nbag-fold:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: 2px;
}
@media (forced-colors: active) {
  mark.nbag-lit {
    color: HighlightText;
    background: Highlight;
    forced-color-adjust: none;
  }
  .nbag-under {
    text-decoration-color: CanvasText;
  }
}
`;var be=1e4,$=class{constructor(e,t,n,o){this.app=e,this.modules=t,this.tracker=n,this.Explanation=K(t.widgets,o,()=>n.filter(()=>!0)),this.views=new Map,this.found=new Map,this.marks=new S(t,(r,a)=>_(r.found,a,t.notebook))}editor({model:e}){let t=e.sharedModel;if(t?.cell_type!=="code")return[];let n=this.modules.view.ViewPlugin.define(o=>{let r=this.views.get(t.id)??new Set;this.views.set(t.id,r.add(o));let a=this.found.get(t.id);return a&&queueMicrotask(()=>this.marks.show(o,a)),{destroy:()=>r.delete(o)}});return[this.marks.extension,n]}async follow(e){let t=n=>new this.Explanation(n);e.content.rendermime.addFactory({safe:!0,mimeTypes:[E],createRenderer:t},0),await e.context.ready,new M(e,(n,o)=>{this.found.set(n,o);for(let r of this.views.get(n)??[])this.marks.show(r,o)},(n,o)=>this.tell(e,n,o))}tell({id:e,content:t},n,o){if(o<be||this.app.shell.currentWidget?.id===e&&!document.hidden)return;let{outputs:r}=n,a=Array.from({length:r?.length??0},(d,g)=>r?.get(g).data??{}),s=a.find(d=>C in d);if(!s)return;let l=b(s[C].language)("open"),c=()=>{this.app.shell.activateById(e),t.widgets.find(({model:d})=>d===n)?.node.scrollIntoView({block:"center"})};this.modules.apputils.Notification.info(String(s["text/plain"]).split(`
`)[0].replaceAll("`",""),{autoClose:!1,actions:[{label:l,callback:c}]})}here(){let e=this.tracker.currentWidget?.content.activeCell,t=e?.editor?.editor,n=t&&j(t,this.marks.field);return n?{view:t,placed:n}:null}apply(e){let t=this.here();t&&_(t.placed.found,e,this.modules.notebook)}fromReport(e){let{change:t,run:n}=e.detail,o=e.composedPath().find(s=>s instanceof HTMLElement&&s.classList.contains("jp-Cell")),r=[...this.found.values()].flat(),a=r.find(({mark:s,from:l,notebook:c})=>c.panel.content.widgets.find(({node:d})=>d===o)?.model===l&&s.change?.line===t.line&&G(s.change?.after??"")===G(t.after));e.detail.refused=a?_(a,n,this.modules.notebook):b(document.documentElement.lang)("refused_gone")}async next(){let e=this.tracker.currentWidget?.content;if(!e)return;let t=e.mode==="edit",n=t?xe(e.activeCell):0,o=e.widgets.flatMap((d,g)=>(this.found.get(d.model.sharedModel.id)??[]).flatMap(p=>{let f=w(d.model.sharedModel.getSource().split(`
`),p.checked),h=p.mark.line+f-p.checked.first_line;return f?[{at:g,cell:d,found:p,line:h}]:[]}));o.sort((d,g)=>d.at-g.at||d.line-g.line);let r=e.activeCellIndex,a=o.find(d=>d.at>r||d.at===r&&d.line>n),s=a??o[0];if(!s)return;e.activeCellIndex=s.at,e.mode="edit",await s.cell.ready;let{editor:l}=s.cell,{to:c}=l.editor.state.doc.line(s.line);l.focus(),l.editor.dispatch({selection:{anchor:c},scrollIntoView:!0,effects:this.marks.effects.open.of(s.found)})}release(){let e=this.here();e?.view.dispatch({effects:this.marks.effects.release.of(e.placed.found)})}},G=i=>i.trim().split(`
`).map(e=>e.trim()).join(`
`);function xe(i){let e=i?.editor?.editor.state;return e?e.doc.lineAt(e.selection.main.head).number:0}function V(i){let{apputils:e,codemirror:t,notebook:n,rendermime:o,translation:r}=i;return{id:"nbautograd:plugin",autoStart:!0,requires:[n.INotebookTracker,t.IEditorExtensionRegistry,o.IRenderMimeRegistry],optional:[e.ICommandPalette,r.ITranslator],activate(a,s,l,c,d,g){document.head.append(Object.assign(document.createElement("style"),{textContent:q}));let p=new $(a,i,s,c),{EditorExtensionRegistry:f}=t;l.addExtension({name:"nbautograd:marks",factory:x=>f.createImmutableExtension(p.editor(x))}),s.forEach(x=>void p.follow(x)),s.widgetAdded.connect((x,k)=>void p.follow(k));let h=g?.languageCode?.startsWith("zh")?"zh":"en",m=new A(a,s,i,h);m.addWriting(),m.add("command.next","next-finding",()=>p.next()),m.add("command.apply","apply",()=>p.apply(!1)),m.add("command.apply_and_run","apply-and-run",()=>p.apply(!0)),m.add("command.release","release",()=>p.release());for(let x of m.ids)d?.addItem({command:x,category:"nbautograd"});document.addEventListener("nbautograd:apply",x=>p.fromReport(x)),document.documentElement.dataset.nbautogradLab="1"}}}var U={};async function we(i){let e=Object.values(U[i]??{}),t=e.find(n=>n.loaded)??e[0];if(!t)throw new Error(`nbautograd: this application has no ${i}`);return(await t.get())()}var ye={init(i){U=i},async get(){let[i,e,t,n,o,r,a,s]=await Promise.all(["@jupyterlab/apputils","@jupyterlab/codemirror","@jupyterlab/notebook","@jupyterlab/rendermime","@jupyterlab/translation","@lumino/widgets","@codemirror/view","@codemirror/state"].map(we)),l={apputils:i,codemirror:e,notebook:t,rendermime:n,translation:o,widgets:r,view:a,state:s};return()=>({__esModule:!0,default:[V(l)]})}},J=window;J._JUPYTERLAB={...J._JUPYTERLAB,nbautograd:ye};})();
