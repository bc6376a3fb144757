// The documentation of the API, from its schema, with forms to try it (Swagger UI, see vendor/).

window.SwaggerUIBundle({
  url: "/openapi.json",
  domNode: document.getElementById("docs"),
  deepLinking: true,
  displayOperationId: true,
  validatorUrl: null, // it would send the schema to another site
});
